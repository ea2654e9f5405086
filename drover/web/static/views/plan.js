// Plan: every move, by topic and partition: before and after, how far, and why it waits. Filters run on the server.

import { h, once, patch, table } from "../dom.js";
import { go, href } from "../address.js";
import { beforeAfter, empty, pager } from "../parts.js";
import { moveColumns, moveRow } from "../move_row.js";
import { planSection } from "../plan_head.js";
import { queueTable } from "./now.js";

const COLUMNS = moveColumns("before → after");
const SHOWS = [
  ["all", "all"],
  ["moving", "moving"],
  ["blocked", "blocked"],
  ["returning", "taken back"],
  ["waiting", "waiting"],
];
const TYPING_MS = 200;

export const query = (address) => ({
  view: "plan",
  cluster: address.cluster,
  plan: address.plan,
  show: address.show,
  q: address.q,
  page: address.page,
});

export function mount(root, address) {
  const nodes = {
    plan: h("div"),
    forgotten: h("div"),
    filters: h("div", { class: "filters" }),
    list: table("Moves", COLUMNS),
    none: h("div"),
    pages: h("div"),
    queue: h("div"),
  };
  root.append(
    nodes.plan,
    nodes.forgotten,
    nodes.filters,
    h("div", { class: "panel" }, nodes.list, nodes.none),
    nodes.pages,
    nodes.queue,
  );
  return (doc, shown) => draw(nodes, doc, shown ?? address);
}

function draw(nodes, doc, address) {
  const cluster = doc.head.cluster;
  patch(nodes.plan, doc.plan, (plan, existing) => planSection(plan, existing, cluster, true));
  once(nodes.forgotten, doc.plan.length ? null : doc.plan_name, (name) => forgotten(name, cluster));
  drawFilters(nodes.filters, doc, address);
  patch(nodes.list.body, grouped(doc.moves), (row, existing) =>
    row.topicOnly ? topicRow(row, existing) : moveRow(existing, COLUMNS, row, cluster, beforeAfter),
  );
  once(nodes.none, doc.moves.length, (number) =>
    number ? null : empty(address.q || address.show ? "No move fits this filter." : "Nothing of it moves or waits."),
  );
  once(nodes.pages, `${doc.matching} ${doc.page} ${doc.pages} ${href(address)}`, () => pager(doc, address, "move"));
  once(nodes.queue, doc.queue, (rows) => queueTable(rows, doc.queued, cluster));
}

const topics = new Map();

// One row object per topic for ever, so that it is drawn once.
function grouped(moves) {
  const rows = [];
  let last = null;
  for (const move of moves) {
    if (move.topic !== last) {
      last = move.topic;
      if (!topics.has(last)) topics.set(last, { key: `topic ${last}`, topicOnly: last });
      rows.push(topics.get(last));
    }
    rows.push(move);
  }
  return rows;
}

function topicRow(row, existing) {
  return (
    existing ??
    h(
      "tr",
      { role: "row", class: "group" },
      h("th", { role: "rowheader", scope: "rowgroup", colSpan: COLUMNS.length }, row.topicOnly),
    )
  );
}

function forgotten(name, cluster) {
  if (name === null) return null;
  return empty([
    "The log's state knows no plan ",
    h("b", {}, name),
    " any more; ",
    h("a", { href: href({ view: "story", cluster, plan: name }) }, "its story"),
    " may.",
  ]);
}

function drawFilters(place, doc, address) {
  if (!place.firstChild) {
    let typing = null;
    const input = h("input", {
      type: "search",
      id: "filter",
      placeholder: "topic:partition, or broker:4",
      "aria-label": "Filter moves",
      autocomplete: "off",
      spellcheck: false,
    });
    input.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => go({ ...place.address, q: input.value.trim(), page: 1 }, { quietly: true }), TYPING_MS);
    });
    const plans = h("select", {
      "aria-label": "Plan",
      onchange: (event) => go({ ...place.address, plan: event.target.value, page: 1 }),
    });
    place.append(plans, h("div", { class: "shows", role: "group", "aria-label": "State" }), input);
  }
  place.address = address;
  const [plans, shows, input] = place.children;
  const names = [...new Set([...doc.plan_names, ...(doc.plan_name ? [doc.plan_name] : [])])];
  once(plans, `${names.join(" ")} ${doc.plan_name}`, () => [
    h("option", { value: "", selected: doc.plan_name === null }, "every plan"),
    names.map((name) => h("option", { value: name, selected: name === doc.plan_name }, name)),
  ]);
  once(shows, address.show ?? "all", (now) =>
    SHOWS.map(([name, word]) =>
      h(
        "a",
        {
          class: "button",
          href: href({ ...address, show: name, page: 1 }),
          "aria-current": name === now ? "true" : null,
        },
        word,
      ),
    ),
  );
  if (document.activeElement !== input && input.value !== (address.q ?? "")) input.value = address.q ?? "";
}
