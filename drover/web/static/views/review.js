// Review: a plan that somebody else made, judged as `drover plan check` judges it; nothing is sent.

import { post } from "../ask.js";
import { h, patch, replace, table, tableRow } from "../dom.js";
import { amount, count, duration, plural } from "../format.js";
import { beforeAfter, empty, heading } from "../parts.js";

const MOVES = [["partition"], ["before → after"], ["bytes", "num"], ["what else", "why"]];
const BROKERS = [
  ["broker"],
  ["replicas", "num"],
  ["leaders", "num"],
  ["in", "num"],
  ["out", "num"],
  ["peak extra", "num"],
  ["room", "num"],
];
const MAX_BYTES = 8_000_000;
// What was pasted stays while other views are looked at.
const kept = { text: "", name: "plan.json", throttle: "", found: null };

export const query = (address) => ({ view: "frame", cluster: address.cluster });

export function mount(root) {
  const text = h("textarea", {
    id: "plan",
    rows: 8,
    spellcheck: false,
    placeholder: '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [4, 2, 3]}]}',
  });
  text.value = kept.text;
  const file = h("input", { type: "file", accept: ".json,.txt,application/json", "aria-label": "Choose a file" });
  const throttle = h("input", {
    type: "search",
    id: "throttle",
    placeholder: "40MB/s",
    autocomplete: "off",
    spellcheck: false,
  });
  throttle.value = kept.throttle;
  const told = h("div", { "aria-live": "polite" });
  const view = { cluster: null, told };
  text.addEventListener("input", () => {
    kept.text = text.value;
    kept.name = "plan.json";
  });
  throttle.addEventListener("input", () => {
    kept.throttle = throttle.value.trim();
  });
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    if (chosen.size > MAX_BYTES) {
      replace(told, empty(`${chosen.name} is larger than ${amount(MAX_BYTES)}.`));
      return;
    }
    kept.text = text.value = decode(new Uint8Array(await chosen.arrayBuffer()));
    kept.name = chosen.name;
    judge(view);
  });
  const form = h(
    "form",
    {
      class: "panel pasted",
      onsubmit: (event) => {
        event.preventDefault();
        judge(view);
      },
    },
    h(
      "label",
      { htmlFor: "plan" },
      "A plan: as kafka-reassign-partitions takes it or prints it, or Cruise Control's JSON",
    ),
    text,
    h(
      "div",
      { class: "filters" },
      file,
      h("label", { htmlFor: "throttle" }, "Throttle"),
      throttle,
      h("button", { type: "submit", class: "strong" }, "Judge"),
    ),
  );
  root.append(heading("Review a plan", "against the cluster as it is now; nothing is sent"), form, told);
  if (kept.found) draw(told, kept.found);
  return (doc) => {
    view.cluster = doc.head.cluster;
  };
}

// Some shells write UTF-16: with a byte order mark, or with a zero byte in the first character, which is ASCII in JSON.
function decode(bytes) {
  const [first, second] = bytes;
  const isLittle = (first === 0xff && second === 0xfe) || second === 0;
  const isBig = (first === 0xfe && second === 0xff) || first === 0;
  return new TextDecoder(isLittle ? "utf-16le" : isBig ? "utf-16be" : "utf-8").decode(bytes);
}

async function judge({ cluster, told }) {
  replace(told, h("p", { class: "quiet" }, "The cluster is looked at…"));
  const { text, name, throttle } = kept;
  ({ found: kept.found } = await post("api/review", { cluster, text, name, throttle }));
  draw(told, kept.found);
}

function draw(place, found) {
  if (found.error)
    return replace(place, h("p", { class: "banner bad" }, h("b", {}, "No judgement"), h("span", {}, found.error)));
  const { totals } = found;
  const unknown = [
    found.unknown_disks.length &&
      `The free space on the disks of broker ${found.unknown_disks.join(", ")} is unknown and was not checked`,
    totals.unknown_sizes &&
      `${plural(totals.unknown_sizes, "partition")} of unknown size ${totals.unknown_sizes === 1 ? "counts" : "count"} as empty`,
    ...found.log_directories.map((remark) => remark.text),
  ].filter(Boolean);
  const remarks = found.problems_total + unknown.length;
  const one = (name, value, more) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, h("strong", {}, value), " ", h("em", {}, more)));
  const racks = found.rack_violations;
  return replace(
    place,
    h(
      "p",
      { class: `banner ${found.is_blocked ? "bad" : remarks ? "warn" : "note"}` },
      h(
        "b",
        {},
        found.is_blocked ? "The plan breaks something" : remarks ? "Worth a look" : "Nothing speaks against it",
      ),
      h("span", {}, remarks ? plural(remarks, "remark") : "by what can be seen now"),
    ),
    remarks > 0 &&
      h(
        "ul",
        { class: "problems" },
        [...found.problems, ...unknown].map((line) => h("li", {}, line)),
        found.problems_total > found.problems.length &&
          h("li", {}, `and ${count(found.problems_total - found.problems.length)} more: drover plan check prints all`),
      ),
    h(
      "dl",
      { class: "figures" },
      one(
        "partitions that change",
        count(totals.partitions),
        found.unchanged ? `${count(found.unchanged)} as asked already` : "",
      ),
      one("copies", count(totals.copies), amount(totals.bytes)),
      one("preferred leaders that move", count(totals.leaders_moved), ""),
      one("in fewer racks than possible", count(racks.after), `${count(racks.before)} now`),
      one(
        "takes at least",
        totals.least_time_s === null ? "–" : duration(totals.least_time_s * 1000),
        totals.least_time_s === null ? "say a throttle" : "at that rate per broker",
      ),
    ),
    heading("The same on the command line"),
    h(
      "pre",
      { class: "panel", tabIndex: 0 },
      found.commands.map((line) => h("code", {}, line)),
    ),
    heading("Brokers", "that it means anything for"),
    brokers(found.brokers),
    heading(
      "Moves",
      found.moves_total > found.moves.length && `the first ${count(found.moves.length)} of ${count(found.moves_total)}`,
    ),
    moves(found.moves),
  );
}

const change = (before, after, word = count) => (before === after ? word(before) : `${word(before)} → ${word(after)}`);

function brokers(rows) {
  if (!rows.length) return empty("For none.");
  const list = table("Brokers", BROKERS);
  patch(
    list.body,
    rows.map((row) => ({ ...row, key: String(row.broker) })),
    (row, existing) =>
      tableRow(
        existing,
        BROKERS,
        [
          h("span", { class: "mono" }, row.broker),
          change(row.replicas_before, row.replicas_after),
          change(row.leaders_before, row.leaders_after),
          row.bytes_in ? amount(row.bytes_in) : "",
          row.bytes_out ? amount(row.bytes_out) : "",
          row.peak_extra_bytes ? amount(row.peak_extra_bytes) : "",
          row.room_bytes === null ? "unknown" : amount(row.room_bytes),
        ],
        { class: row.room_bytes !== null && row.peak_extra_bytes > row.room_bytes ? "leftover" : null },
      ),
  );
  return h("div", { class: "panel" }, list);
}

function moves(rows) {
  if (!rows.length) return empty("Nothing has to move.");
  const list = table("Moves", MOVES);
  patch(
    list.body,
    rows.map((row) => ({ ...row, key: `${row.topic}:${row.partition}` })),
    (row, existing) =>
      tableRow(existing, MOVES, [
        h("span", { class: "mono" }, row.key),
        beforeAfter({ original: row.before, target: row.after, leader: null, marks: row.marks }),
        row.adding.length ? (row.bytes === null ? "unknown" : amount(row.bytes)) : "",
        row.moves_leader ? "another preferred leader" : "",
      ]),
  );
  return h("div", { class: "panel" }, list);
}
