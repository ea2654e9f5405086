// Story: who asked for what and why, the verdict, and every event; of a partition, a plan, a command, or of all.

import { h, once, patch, table, tableRow } from "../dom.js";
import { moment } from "../format.js";
import { button } from "../act.js";
import { go, href } from "../address.js";
import { empty, pager } from "../parts.js";

const COLUMNS = [
  ["time"],
  ["log", "num"],
  ["what"],
  ["partition"],
  ["plan"],
  ["by"],
  ["reason", "why"],
  ["detail", "why"],
];
const PARTITION = /^(.+):(\d+)$/;

export const query = (address) => ({
  view: "story",
  cluster: address.cluster,
  partition: address.partition,
  plan: address.plan,
  id: address.id,
  page: address.page,
});

export function mount(root, address) {
  const nodes = {
    title: h("div"),
    form: find(),
    list: table("Events, the newest first", COLUMNS),
    none: h("div"),
    pages: h("div"),
    kept: h("div"),
  };
  root.append(nodes.title, nodes.form, h("div", { class: "panel" }, nodes.list, nodes.none), nodes.pages, nodes.kept);
  return (doc, shown) => draw(nodes, doc, shown ?? address);
}

function draw(nodes, doc, address) {
  nodes.form.address = address;
  once(nodes.title, JSON.stringify(doc.about), () => title(doc.about, address, doc.head.cluster));
  patch(nodes.list.body, doc.events, (row, existing) => eventRow(row, existing, doc.head.cluster));
  once(nodes.none, `${doc.events.length} ${doc.is_complete}`, () =>
    doc.events.length
      ? null
      : empty(doc.is_complete ? "The log has no matching commands or events." : "The log is still being read…"),
  );
  once(nodes.pages, `${doc.matching} ${doc.page} ${href(address)}`, () => pager(doc, address, "event"));
  once(nodes.kept, `${doc.dropped_until_ms} ${doc.is_complete}`, () => [
    !doc.is_complete && empty("The log is still being read: older events will follow."),
    doc.dropped_until_ms !== null &&
      empty(
        `The page keeps the latest events; what is older than ${moment(doc.dropped_until_ms)} is told by drover history.`,
      ),
  ]);
}

function title(about, address, cluster) {
  const [kind, name] = Object.entries(about).find(([, value]) => value) ?? [null, null];
  if (kind === null)
    return h(
      "h2",
      { class: "section" },
      "Everything",
      h("span", { class: "quiet" }, "the newest first; name a partition, a plan or a command to follow it"),
    );
  const word = { partition: "partition", plan: "plan", id: "command" }[kind];
  return h(
    "h2",
    { class: "section" },
    h("span", { class: "mono" }, name),
    h(
      "span",
      { class: "quiet" },
      `the story of this ${word} · `,
      h("a", { href: href({ view: "story", cluster: address.cluster }) }, "everything"),
    ),
    kind !== "id" && button({ cluster, [kind]: name }),
  );
}

function find() {
  const input = h("input", {
    type: "search",
    id: "filter",
    placeholder: "orders:3, a plan, or a command's id",
    "aria-label": "Partition, plan or command",
    autocomplete: "off",
    spellcheck: false,
  });
  const form = h(
    "form",
    { class: "filters" },
    input,
    h("button", { type: "submit", value: "partition" }, "Partition"),
    h("button", { type: "submit", value: "plan" }, "Plan"),
    h("button", { type: "submit", value: "id" }, "Command"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const name = input.value.trim();
    // Enter alone: what looks like a partition is one, anything else a plan.
    const asked = event.submitter?.matches(":focus")
      ? event.submitter.value
      : PARTITION.test(name)
        ? "partition"
        : "plan";
    if (name) go({ view: "story", cluster: form.address.cluster, [asked]: name });
  });
  return form;
}

function eventRow(row, existing, cluster) {
  const link = (kind, name) => h("a", { class: "mono", href: href({ view: "story", cluster, [kind]: name }) }, name);
  const [what, verdict] = row.kind === "command" ? row.what.split(" ") : [row.what, null];
  return tableRow(
    existing,
    COLUMNS,
    [
      h("time", { dateTime: new Date(row.at_ms).toISOString(), class: "mono" }, moment(row.at_ms)),
      h("span", { class: "mono quiet" }, `${row.shard}@${row.offset}`),
      [
        row.kind === "command" ? h("b", {}, what) : what.replaceAll("-", " "),
        verdict && h("span", { class: `verdict ${verdict}` }, verdict),
      ],
      [
        row.partitions.map((name, index) => [index ? " " : "", link("partition", name)]),
        row.more_partitions ? ` +${row.more_partitions}` : "",
      ],
      row.plan ? link("plan", row.plan) : "",
      h("bdi", {}, row.by),
      h("bdi", {}, row.reason),
      [row.id && link("id", row.id), row.id && row.detail ? " · " : "", row.detail],
    ],
    {
      class: row.kind,
      "data-href": row.partitions.length ? href({ view: "story", cluster, partition: row.partitions[0] }) : null,
    },
  );
}
