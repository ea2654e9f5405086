// What several views show: replicas, bars, states, reasons, ages.

import { h, replace, visible } from "./dom.js";
import { amount, clock, count, duration, moment, percent, plural, rate } from "./format.js";
import { href } from "./address.js";

// The server's clock counts: ages are of the log, and not of this machine.
export const server = { offset: 0 };
export const now = () => Date.now() + server.offset;

export const age = (since, prefix = "") =>
  h(
    "time",
    {
      class: "age",
      "data-since": since,
      "data-prefix": prefix,
      dateTime: new Date(since).toISOString(),
      title: moment(since),
    },
    `${prefix}${duration(now() - since)}`,
  );

export function tick() {
  for (const node of document.querySelectorAll("time[data-since]")) {
    const text = `${node.dataset.prefix}${duration(now() - Number(node.dataset.since))}`;
    if (node.textContent !== text) node.textContent = text;
  }
}

const chip = (broker, kind, title) => h("span", { class: kind, title }, broker);

// What is said against a broker: it is gone, unreachable, closed for moves, or should not lead.
const marksOf = (move, broker) => move.marks.filter((one) => one.broker === broker);
const markClass = (marks) => (marks.length ? `marked ${marks[0].mark}` : "");
const markTitle = (marks) => marks.map((one) => one.why).join("; ");
const markWords = (move) => move.marks.map((one) => `, ${one.why}`).join("");

// One list: what stays and what comes, in the target's order, then what goes.
export function replicas(move) {
  const { original, target, leader } = move;
  const one = (broker) => {
    const words = [];
    if (broker === leader) words.push("leads");
    if (!original.includes(broker)) words.push("joins");
    if (!target.includes(broker)) words.push("leaves");
    const classes = { leads: "lead", joins: "add", leaves: "drop" };
    const marks = marksOf(move, broker);
    const said = `broker ${broker}${words.length ? " " : ""}${words.join(", ")}`;
    return chip(
      broker,
      [...words.map((word) => classes[word]), markClass(marks)].join(" ").trim(),
      marks.length ? `${said}; ${markTitle(marks)}` : said,
    );
  };
  const order = [...target, ...original.filter((broker) => !target.includes(broker))];
  return h(
    "span",
    { class: "replicas" },
    h(
      "span",
      { class: "hidden" },
      `from ${original.join(", ")} to ${target.join(", ")}${leader === null ? "" : `, broker ${leader} leads`}${markWords(move)}`,
    ),
    h("span", { class: "chips", "aria-hidden": "true" }, order.map(one)),
  );
}

export function beforeAfter(move) {
  const plain = (list, kind) =>
    list.map((broker) => {
      const marks = marksOf(move, broker);
      const classes = [broker === move.leader ? "lead" : "", kind(broker), markClass(marks)];
      return chip(broker, classes.join(" ").trim(), markTitle(marks) || undefined);
    });
  return h(
    "span",
    { class: "replicas" },
    h("span", { class: "hidden" }, `from ${move.original.join(", ")} to ${move.target.join(", ")}${markWords(move)}`),
    h(
      "span",
      { class: "chips", "aria-hidden": "true" },
      plain(move.original, (one) => (move.target.includes(one) ? "" : "drop")),
      h("i", {}, "→"),
      plain(move.target, (one) => (move.original.includes(one) ? "" : "add")),
    ),
    move.next_target && h("small", {}, ` then ${move.next_target.join(",")} in ${move.next_plan}`),
  );
}

const STATES = { moving: "", blocked: "blocked", returning: "back", waiting: "queued" };
export const state = (move) =>
  h(
    "span",
    { class: `state ${STATES[move.kind]}` },
    move.kind === "blocked" ? "blocked" : move.state.replaceAll("-", " "),
    move.step > 1 && h("small", {}, ` step ${move.step}`),
  );

export function progress(move, label) {
  if (move.percent === null) return h("span", { class: "quiet" }, move.kind === "waiting" ? "not begun" : "–");
  return h(
    "span",
    { class: "copied" },
    h("progress", { value: move.percent, max: 100, class: STATES[move.kind], "aria-label": `${label} copied` }),
    h("span", {}, `${Math.floor(move.percent)}\u00a0%`),
  );
}

// `then` is the moment of the past that is shown, if one is.
export function why(move, then = null) {
  const parts = [];
  if (move.why) {
    parts.push(
      h("b", {}, move.why),
      move.kind !== "moving" && [" for ", then === null ? age(move.since_ms) : duration(then - move.since_ms)],
      move.remedy && `. ${sentence(move.remedy)}`,
    );
  }
  if (move.deferred) parts.push(parts.length ? " · " : "", h("span", { class: "deferred" }, move.deferred));
  return parts;
}

const sentence = (text) => {
  const shown = visible(text);
  return shown.charAt(0).toUpperCase() + shown.slice(1);
};

export function banner(row, existing) {
  const node = existing ?? h("p");
  node.className = `banner ${row.level}`;
  const at = row.key.indexOf(": ");
  replace(
    node,
    h("b", {}, sentence(at < 0 ? row.key : row.key.slice(0, at))),
    at >= 0 && h("span", {}, row.key.slice(at + 2)),
  );
  return node;
}

export const storyLink = (cluster, partition) =>
  h("a", { class: "mono", href: href({ view: "story", cluster, partition }) }, partition);

// A bar of parts that belong together, and in words what they are.
export function parts(pieces, total) {
  const shown = pieces.filter(([number]) => number > 0);
  return [
    h(
      "div",
      { class: "bar", "aria-hidden": "true" },
      shown.map(([number, , kind]) => h("i", { class: kind, width: `${percent(number, total)}%` })),
    ),
    h(
      "div",
      { class: "legend" },
      shown.map(([number, word, kind]) => h("span", {}, h("s", { class: kind }), `${count(number)} ${word}`)),
    ),
  ];
}

export function ends(tally) {
  if (tally.latest_ms === null) return "–";
  const last = clock(now() + tally.latest_ms, false);
  const first = clock(now() + (tally.soonest_ms ?? tally.latest_ms), false);
  return first === last ? last : `${first} – ${last}`;
}

export function empty(text) {
  return h("p", { class: "quiet empty" }, text);
}

export function pager(doc, query, noun) {
  const link = (page, text, enabled, name) =>
    enabled
      ? h("a", { class: "button", href: href({ ...query, page }), rel: name }, text)
      : h("span", { class: "button off" }, text);
  return h(
    "nav",
    { class: "pager", "aria-label": "Pages" },
    h("span", {}, `${plural(doc.matching, noun)}${doc.pages > 1 ? `, page ${doc.page} of ${count(doc.pages)}` : ""}`),
    doc.pages > 1 && [
      link(doc.page - 1, "Previous", doc.page > 1, "prev"),
      link(doc.page + 1, "Next", doc.page < doc.pages, "next"),
    ],
  );
}

export function heading(text, ...more) {
  return h("h2", { class: "section" }, text, h("span", { class: "quiet" }, more));
}
