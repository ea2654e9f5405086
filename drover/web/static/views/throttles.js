// Throttles: what was found, what Drover wants, since when, and what is left over.

import { post } from "../ask.js";
import { h, once, patch, replace, table, tableRow } from "../dom.js";
import { count, plural, rate, setting } from "../format.js";
import { age, empty, heading } from "../parts.js";

const BROKERS = [
  ["broker"],
  ["found (out / in)", "num"],
  ["wanted (out / in)", "num"],
  ["since", "num"],
  ["is", "why"],
];
const LIMITS = [["limit"], ["in force", "num"], ["settings", "num"], ["set by", "why"], ["bounds", "why"]];
const FOUND_BROKERS = [["broker"], ["out / in", "num"], ["whose"], ["is", "why"]];
const FOUND_TOPICS = [["topic"], ["throttled leaders"], ["throttled followers"], ["whose"], ["is", "why"]];
const TOPICS = [["topic"], ["throttled leaders"], ["throttled followers"], ["is", "why"]];

export const query = (address) => ({ view: "throttles", cluster: address.cluster });

export function mount(root) {
  const brokers = table("Throttles of brokers", BROKERS);
  const topics = table("Throttles of topics", TOPICS);
  const limits = table("Limits", LIMITS);
  const none = [h("div"), h("div")];
  const others = new Others();
  root.append(
    heading("Brokers", "dynamic replication rates; put back as they were found"),
    h("div", { class: "panel" }, brokers, none[0]),
    heading("Topics", "the entries partition:broker that are Drover's; others are never touched"),
    h("div", { class: "panel" }, topics, none[1]),
    heading("Of others", "rates and entries that Drover has not set: only a look at the cluster tells"),
    others.node,
    heading("Limits", "what holds, and by whose word"),
    h("div", { class: "panel" }, limits),
  );
  return (doc) => {
    others.cluster = doc.head.cluster;
    patch(brokers.body, doc.broker_throttles, brokerRow);
    patch(topics.body, doc.topic_throttles, topicRow);
    patch(limits.body, doc.limits, limitRow);
    once(none[0], doc.broker_throttles.length, (number) => (number ? null : empty("Drover throttles no broker.")));
    once(none[1], doc.topic_throttles_total, (number) =>
      number
        ? number > doc.topic_throttles.length && empty(`and ${count(number - doc.topic_throttles.length)} more topics`)
        : empty("Drover has entries in no topic's lists."),
    );
  };
}

const both = (out, into) => `${out === null ? "none" : rate(out)} / ${into === null ? "none" : rate(into)}`;
const says = (row) => (row.is_leftover ? h("b", {}, row.says) : row.says);

function brokerRow(row, existing) {
  return tableRow(
    existing,
    BROKERS,
    [
      h("span", { class: "mono" }, row.broker),
      both(row.found_leader, row.found_follower),
      both(row.wanted_leader, row.wanted_follower),
      row.since_ms === null ? "–" : age(row.since_ms),
      says(row),
    ],
    { class: row.is_leftover ? "leftover" : null },
  );
}

function limitRow(row, existing) {
  return tableRow(existing, LIMITS, [
    h("span", { class: "mono" }, row.name),
    setting(row.value),
    row.by === null ? "" : setting(row.settings_value),
    row.by === null
      ? "the settings"
      : [h("bdi", {}, row.by), " · “", h("bdi", {}, row.reason), "” · ", age(row.since_ms), " ago"],
    row.about,
  ]);
}

function topicRow(row, existing) {
  return tableRow(
    existing,
    TOPICS,
    [h("span", { class: "mono" }, row.topic), entries(row.leader_entries), entries(row.follower_entries), says(row)],
    { class: row.is_leftover ? "leftover" : null },
  );
}

function entries(list) {
  if (!list.length) return "none";
  const shown = list.slice(0, 12).join(" ");
  return h("span", { class: "mono wrap" }, shown, list.length > 12 ? ` and ${count(list.length - 12)} more` : "");
}

// What is set in the cluster by others, and leftover throttles: asked for when somebody wants to know, and shown with its age.
class Others {
  constructor() {
    this.told = h("div", { "aria-live": "polite" });
    this.button = h("button", { type: "button", onclick: () => this.look() }, "Look at the cluster");
    this.node = h("div", {}, h("p", {}, this.button), this.told);
  }

  async look() {
    this.button.disabled = true;
    replace(this.told, h("p", { class: "quiet" }, "Every broker and topic is looked at…"));
    const { found } = await post("api/throttles", { cluster: this.cluster });
    this.button.disabled = false;
    replace(
      this.told,
      found.error
        ? h("p", { class: "banner bad" }, h("b", {}, "Nobody knows"), h("span", {}, found.error))
        : othersFound(found),
    );
  }
}

function othersFound(found) {
  const { leftovers } = found;
  const more = found.brokers_total + found.topics_total - found.brokers.length - found.topics.length;
  return [
    h(
      "p",
      { class: `banner ${leftovers ? "warn" : "note"}` },
      h("b", {}, leftovers ? plural(leftovers, "leftover throttle") : "No leftover throttles"),
      h(
        "span",
        {},
        leftovers > 0 && ["that nothing needs: ", h("code", {}, "drover throttle clean"), " deletes them · "],
        "seen ",
        age(found.at_ms),
        " ago",
      ),
    ),
    found.brokers.length > 0 &&
      panel("Rates of others", FOUND_BROKERS, found.brokers, (row) => [
        h("span", { class: "mono" }, row.broker),
        both(row.leader, row.follower),
        whose(row),
        row.says,
      ]),
    found.topics.length > 0 &&
      panel("Throttled replicas of others", FOUND_TOPICS, found.topics, (row) => [
        h("span", { class: "mono" }, row.topic),
        entries(row.leader),
        entries(row.follower),
        whose(row),
        row.entries_total > row.leader.length + row.follower.length
          ? `${row.says} (${count(row.entries_total)} entries)`
          : row.says,
      ]),
    more > 0 && empty(`and ${count(more)} more: drover throttle show shows all`),
  ];
}

const whose = (row) => (row.whose === "leftover" ? h("b", {}, "leftover") : row.whose);

function panel(caption, columns, rows, contents) {
  const list = table(caption, columns);
  patch(
    list.body,
    rows.map((row, index) => ({ ...row, key: String(index) })),
    (row, existing) => tableRow(existing, columns, contents(row), { class: row.whose === "leftover" ? "leftover" : null }),
  );
  return h("div", { class: "panel" }, list);
}
