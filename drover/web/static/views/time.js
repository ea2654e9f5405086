// Time: a slider over the log; the state as it was then, and what is different at another moment.

import { ask } from "../ask.js";
import { h, patch, replace, table, tableRow } from "../dom.js";
import { amount, clock, count, duration, moment } from "../format.js";
import { go, href } from "../address.js";
import { banner, beforeAfter, empty, heading, now, state, storyLink, why } from "../parts.js";

const MOVES = [["partition"], ["before → after"], ["state"], ["waits for", "why"]];
const CHANGES = [["what"], ["name"], ["change"], ["before", "why"], ["after", "why"]];
const STEPS = [
  ["a minute", 60_000],
  ["10 minutes", 600_000],
  ["an hour", 3_600_000],
  ["a day", 86_400_000],
];
const SETTLED_MS = 250;

// It follows the shard of one cluster; what is shown of the past is asked for.
export const query = (address) => ({ view: "frame", cluster: address.cluster });

export function mount(root, address) {
  const slider = h("input", { type: "range", id: "moment", min: 0, max: 1000, step: 1, "aria-label": "Moment" });
  // It means nothing until the page knows which time the log spans.
  slider.disabled = true;
  const told = h("output", { class: "moment", "aria-live": "polite" });
  const steps = h("div", { class: "shows" });
  const then = h("div");
  const changes = h("div");
  root.append(h("div", { class: "slider" }, told, slider, steps), changes, then);
  const view = { slider, told, steps, then, changes, span: null, shown: null, waiting: null, isAsking: false };
  slider.addEventListener("input", () => {
    const at = momentOf(view);
    tell(view, at);
    clearTimeout(view.waiting);
    view.waiting = setTimeout(() => go({ ...view.address, view: "time", at }, { quietly: true }), SETTLED_MS);
  });
  const update = (doc, shown) => {
    view.address = { ...(shown ?? address), cluster: doc.head.cluster };
    follow(view);
  };
  return update;
}

// One question at a time, and then the latest: each folds a part of the log.
async function follow(view) {
  view.isWanted = true;
  if (view.isAsking) return;
  view.isAsking = true;
  while (view.isWanted) {
    view.isWanted = false;
    await look(view);
  }
  view.isAsking = false;
}

async function look(view) {
  const { cluster, ...wanted } = view.address;
  view.span ??= await ask("api/strip", { cluster });
  if (view.span.error) {
    replace(view.then, empty(view.span.error));
    view.span = null;
    return;
  }
  const at = Number(wanted.at) || view.span.last_ms;
  // The other moment: now, unless one was kept.
  const other = Number(wanted.to) || null;
  const shown = `${cluster} ${at} ${other}`;
  if (view.shown === shown) return;
  view.shown = shown;
  drawControls(view, cluster, at, other);
  const [then, difference] = await Promise.all([
    ask("api/document", { view: "plan", cluster, at }),
    ask("api/difference", { cluster, from: at, to: other ?? Math.round(now()) + 60_000 }),
  ]);
  drawThen(view.then, then, at);
  const when = other === null ? "now" : `between ${clock(Math.min(at, other))} and ${clock(Math.max(at, other))}`;
  drawChanges(view.changes, difference, when);
}

function drawControls(view, cluster, at, other) {
  const { slider, steps, span } = view;
  const { first_ms: first, last_ms: last } = span;
  slider.disabled = false;
  if (document.activeElement !== slider)
    slider.value = String(Math.round((1000 * (at - first)) / Math.max(1, last - first)));
  tell(view, at);
  const link = (text, moments) => h("a", { class: "button", href: href({ view: "time", cluster, ...moments }) }, text);
  const step = (text, moment_) => link(text, { to: other, at: Math.min(Math.max(moment_, first), last) });
  replace(
    steps,
    [...STEPS].reverse().map(([word, ms]) => step(`− ${word}`, at - ms)),
    STEPS.map(([word, ms]) => step(`+ ${word}`, at + ms)),
    other === null ? link("Compare with this moment", { at, to: at }) : link("Compare with now", { at }),
  );
}

const momentOf = ({ span, slider }) =>
  Math.round(span.first_ms + (Number(slider.value) / 1000) * (span.last_ms - span.first_ms));

function tell({ told, slider }, at) {
  const text = `${moment(at)}, ${duration(now() - at)} ago`;
  replace(told, h("b", {}, moment(at)), h("span", { class: "quiet" }, ` ${duration(now() - at)} ago`));
  slider.setAttribute("aria-valuetext", text);
}

function drawThen(place, doc, at) {
  if (doc.error) return replace(place, empty(doc.error));
  const head = heading(
    `The state at ${clock(at)}`,
    doc.head.cluster === null
      ? ""
      : [`log ${doc.head.shard}@${doc.head.offset}`, doc.head.owner ? `, owned by ${doc.head.owner}` : ""],
  );
  if (doc.head.cluster === null) return replace(place, head, empty("The log knew no such cluster yet."));
  const list = table("Moves then", MOVES);
  patch(list.body, doc.moves, (move, existing) =>
    tableRow(existing, MOVES, [storyLink(doc.head.cluster, move.key), beforeAfter(move), state(move), why(move, at)], {
      class: move.kind,
    }),
  );
  return replace(
    place,
    head,
    doc.notices.map((notice) => banner(notice, null)),
    h(
      "div",
      { class: "panel" },
      list,
      doc.matching > doc.moves.length && empty(`and ${count(doc.matching - doc.moves.length)} more`),
      !doc.moves.length && empty("Nothing moved or waited."),
    ),
  );
}

function drawChanges(place, found, when) {
  if (found.error) return replace(place, empty(found.error));
  const list = table("Changes since then", CHANGES);
  const rows = found.changes.slice(0, 200).map((change, index) => ({ ...change, key: `${index}` }));
  patch(list.body, rows, (row, existing) =>
    tableRow(existing, CHANGES, [
      row.kind,
      h("span", { class: "mono" }, row.name),
      [row.what, row.detail && `, ${row.detail}`],
      fields(row.before),
      fields(row.after),
    ]),
  );
  return replace(
    place,
    heading(
      `What is different ${when}`,
      `${count(found.changes.length)} changes from ${found.shard}@${found.from.offset} to ${found.shard}@${found.to.offset}`,
    ),
    h(
      "div",
      { class: "panel" },
      list,
      !rows.length && empty(when === "now" ? "Nothing has changed since." : "Nothing changed in between."),
    ),
  );
}

// What a row says of itself already, and what means nothing to people.
const UNSAID = new Set(["key", "name", "cluster", "topic", "partition", "topic_id", "number"]);

function fields(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "object" || Array.isArray(value)) return String(value);
  const shown = Object.entries(value).filter(
    ([name, one]) =>
      !UNSAID.has(name) && one !== null && one !== "" && one !== false && one !== 0 && JSON.stringify(one) !== "[]",
  );
  return h(
    "span",
    { class: "fields" },
    shown
      .slice(0, 8)
      .map(([name, one], index) => [index ? " · " : "", words(name), " ", h("bdi", {}, said(name, one))]),
  );
}

const words = (name) => name.replace(/_ms$/, "").replaceAll("_", " ");

function said(name, value) {
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.join(",");
  if (name.endsWith("_ms") && value > 1e12) return clock(value);
  if (typeof value === "number") return name.includes("bytes") ? amount(value) : count(value);
  return typeof value === "object" ? (value.why ?? value.number ?? JSON.stringify(value)) : value;
}
