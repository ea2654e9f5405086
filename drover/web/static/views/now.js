// Now: every plan with its bars, what is blocked and why, the brokers.

import { h, once, patch, table, tableRow } from "../dom.js";
import { amount, count, plural, rate } from "../format.js";
import { href } from "../address.js";
import { age, empty, ends, heading, replicas, storyLink, why } from "../parts.js";
import { planSection } from "../plan_head.js";
import { moveColumns, moveRow } from "../move_row.js";
import { brokerCard } from "./brokers.js";

const COLUMNS = moveColumns("replicas");

export const query = (address) => ({ view: "now", cluster: address.cluster });

export function mount(root) {
  const nodes = {
    figures: h("dl", { class: "figures" }),
    plans: h("div"),
    idle: h("div"),
    queue: h("div"),
    unmanaged: h("div"),
    brokersTitle: h("div"),
    brokers: h("ul", { class: "brokers" }),
  };
  root.append(
    nodes.figures,
    nodes.idle,
    nodes.plans,
    nodes.queue,
    nodes.unmanaged,
    nodes.brokersTitle,
    nodes.brokers,
  );
  return (doc, address) => draw(nodes, doc, address);
}

function draw(nodes, doc, address) {
  const cluster = doc.head.cluster;
  once(nodes.figures, doc.figures, figures);
  const moves = group(doc.plan_moves);
  patch(nodes.plans, doc.plans, (plan, existing) => planSection(plan, existing, cluster));
  const underWay = new Map(
    doc.plans.map(({ key, tally }) => [key, tally.moving + tally.blocked + tally.returning + tally.waiting]),
  );
  for (const section of nodes.plans.children) {
    const { key } = section.dataset;
    drawMoves(section, moves.get(key) ?? [], underWay.get(key), cluster);
  }
  once(nodes.idle, doc.plans.length, (number) => (number ? null : empty("Nothing moves: no plan is open.")));
  once(nodes.queue, doc.queue, (queue) => queueTable(queue, doc.figures.queued, cluster));
  once(nodes.unmanaged, doc.unmanaged, (rows) => unmanaged(rows, doc.unmanaged_total));
  once(nodes.brokersTitle, doc.brokers.length, (number) => number > 0 && heading("Brokers", "that the log names"));
  patch(nodes.brokers, doc.brokers, (broker, existing) => brokerCard(broker, existing, address));
}

function group(rows) {
  const found = new Map();
  for (const row of rows) found.set(row.plan, [...(found.get(row.plan) ?? []), row]);
  return found;
}

function figures(found) {
  const left = Math.max(0, found.bytes_total - found.bytes_done) + (found.rest_bytes ?? 0);
  const one = (name, value, more) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, h("strong", {}, value), " ", h("em", {}, more)));
  return [
    one("in flight", count(found.in_flight), [
      `of ${plural(found.slots, "slot")}`,
      found.blocked > 0 && [", ", h("b", { class: "warn" }, `${count(found.blocked)} blocked`)],
    ]),
    one("waiting", count(found.waiting), found.queued ? `and ${count(found.queued)} in the queue` : ""),
    one("copying", found.sampled ? rate(found.rate) : "–", found.sampled ? `${count(found.sampled)} partitions` : ""),
    one("left to copy", found.sampled ? amount(left) : "–", found.rest_bytes === null ? "of what has begun" : ""),
    one("all ends", ends(found), found.latest_ms === null ? "" : "at this rate"),
  ];
}

function drawMoves(section, moves, underWay, cluster) {
  if (section.children.length < 2) section.append(h("div", { class: "moves" }));
  const place = section.lastChild;
  if (!moves.length) return place.replaceChildren();
  if (!place.firstChild)
    place.append(table(`Moves of plan ${section.dataset.key}`, COLUMNS), h("p", { class: "more" }));
  patch(place.firstChild.body, moves, (move, row) => moveRow(row, COLUMNS, move, cluster, replicas));
  const rest = underWay - moves.length;
  return once(place.lastChild, rest, () =>
    h(
      "a",
      { href: href({ view: "plan", cluster, plan: section.dataset.key }) },
      rest > 0 ? `and ${count(rest)} more: the whole plan` : "the whole plan",
    ),
  );
}

const QUEUE = [["in the queue"], ["plan"], ["target"], ["for", "num"], ["waits for", "why"]];

export function queueTable(rows, total, cluster) {
  if (!rows.length) return null;
  const node = table("The queue", QUEUE);
  patch(node.body, rows, (row, existing) =>
    tableRow(existing, QUEUE, [
      storyLink(cluster, row.key),
      row.plan,
      row.target.join(", "),
      age(row.since_ms),
      row.waiting,
    ]),
  );
  return [
    heading("In the queue", total > rows.length && `the first ${rows.length} of ${count(total)}`),
    h("div", { class: "panel" }, node),
  ];
}

const UNMANAGED = [["partition"], ["replicas"], ["adding"], ["removing"], ["for", "num"], ["what to do", "why"]];

function unmanaged(rows, total) {
  if (!rows.length) return null;
  const node = table("Moves that others began", UNMANAGED);
  patch(node.body, rows, (row, existing) =>
    tableRow(existing, UNMANAGED, [
      h("span", { class: "mono" }, `${row.topic}:${row.partition}`),
      row.replicas.join(", "),
      row.adding.join(", "),
      row.removing.join(", "),
      age(row.since_ms),
      row.remedy,
    ]),
  );
  return [
    heading("Moves of others", total > rows.length && `the first ${rows.length} of ${count(total)}`),
    h("div", { class: "panel" }, node),
  ];
}
