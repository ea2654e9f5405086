// Health: who owns each shard, how far it is, and what could not be read as a command.

import { h, once, patch, table, tableRow } from "../dom.js";
import { count, duration, moment } from "../format.js";
import { age, empty, heading } from "../parts.js";

const SHARDS = [
  ["shard"],
  ["owner"],
  ["epoch", "num"],
  ["log", "num"],
  ["not read", "num"],
  ["undecided", "num"],
  ["last record", "num"],
  ["fenced", "num"],
  ["clusters", "why"],
];
const LETTERS = [["time"], ["from"], ["why", "why"], ["bytes", "num"], ["content", "why"]];
const PROJECTIONS = [["cluster"], ["writer"], ["is"], ["behind", "num"], ["drift", "num"], ["says", "why"]];

export const query = () => ({ view: "health" });

export function mount(root) {
  const shards = table("Shards", SHARDS);
  const letters = table("Dead letters", LETTERS);
  const projections = h("div");
  const none = h("div");
  root.append(
    heading(
      "Shards of the log",
      "“not read” counts records that this page has not folded, “undecided” commands that nobody has decided",
    ),
    h("div", { class: "panel" }, shards),
    projections,
    heading("Dead letters", "what arrived on a command topic and is no command"),
    h("div", { class: "panel" }, letters, none),
  );
  return (doc) => {
    patch(shards.body, doc.shards, shardRow);
    patch(letters.body, doc.dead_letters, letterRow);
    once(projections, doc.projections, projectionTable);
    once(none, `${doc.dead_letters_total} ${doc.dead_letters.length}`, () => {
      const more = doc.dead_letters_total - doc.dead_letters.length;
      return more > 0 ? empty(`and ${count(more)} older`) : doc.dead_letters.length ? null : empty("There are none.");
    });
  };
}

const number = (value) => (value === null ? "–" : count(value));

function shardRow(row, existing) {
  return tableRow(existing, SHARDS, [
    row.shard,
    row.is_owned
      ? h("bdi", {}, row.owner)
      : h("b", { class: "bad" }, row.owner ? `nobody; last ${row.owner}` : "nobody"),
    row.epoch,
    `${count(row.position)}`,
    number(row.unread),
    row.undecided ? h("b", {}, number(row.undecided)) : number(row.undecided),
    row.last_record_ms === null ? "–" : age(row.last_record_ms),
    count(row.fenced_batches),
    row.clusters.join(", "),
  ]);
}

function letterRow(row, existing) {
  const content = row.content.length > 200 ? `${row.content.slice(0, 200)}…` : row.content;
  return tableRow(existing, LETTERS, [
    h("span", { class: "mono" }, moment(row.at_ms)),
    h("span", { class: "mono" }, `${row.topic} ${row.partition}@${row.source_offset}`),
    row.error,
    count(row.size_bytes),
    h("code", {}, content),
  ]);
}

function projectionTable(rows) {
  if (!rows.length) return null;
  const list = table("Projections", PROJECTIONS);
  patch(list.body, rows, (row, existing) =>
    tableRow(existing, PROJECTIONS, [
      row.cluster,
      row.writer,
      row.role,
      `${count(row.lag_events)} events, ${duration(row.lag_ms)}`,
      count(row.drifted),
      row.error ?? "well",
    ]),
  );
  return [heading("The view in ZooKeeper"), h("div", { class: "panel" }, list)];
}
