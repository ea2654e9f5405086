// Throttles: what was found, what Drover wants, since when, and what is left over.

import { h, once, patch, table, tableRow } from "../dom.js";
import { count, rate } from "../format.js";
import { age, empty, heading } from "../parts.js";

const BROKERS = [["broker"], ["found (out / in)", "num"], ["wanted (out / in)", "num"], ["since", "num"], ["is", "why"]];
const LIMITS = [["limit"], ["in force", "num"], ["settings", "num"], ["set by", "why"], ["bounds", "why"]];
const TOPICS = [["topic"], ["throttled leaders"], ["throttled followers"], ["is", "why"]];

export const query = (address) => ({ view: "throttles", cluster: address.cluster });

export function mount(root) {
  const brokers = table("Throttles of brokers", BROKERS);
  const topics = table("Throttles of topics", TOPICS);
  const limits = table("Limits", LIMITS);
  const none = [h("div"), h("div")];
  root.append(heading("Brokers", "dynamic replication rates; put back as they were found"), h("div", { class: "panel" }, brokers, none[0]),
    heading("Topics", "the entries partition:broker that are Drover's; others are never touched"), h("div", { class: "panel" }, topics, none[1]),
    heading("Limits", "what holds, and by whose word"), h("div", { class: "panel" }, limits));
  return (doc) => {
    patch(brokers.body, doc.broker_throttles, brokerRow);
    patch(topics.body, doc.topic_throttles, topicRow);
    patch(limits.body, doc.limits, limitRow);
    once(none[0], doc.broker_throttles.length, (number) => (number ? null : empty("Drover throttles no broker.")));
    once(none[1], doc.topic_throttles_total, (number) => (number ? number > doc.topic_throttles.length && empty(`and ${count(number - doc.topic_throttles.length)} more topics`) : empty("Drover has entries in no topic's lists.")));
  };
}

const both = (out, into) => `${out === null ? "none" : rate(out)} / ${into === null ? "none" : rate(into)}`;
const says = (row) => (row.is_stray ? h("b", {}, row.says) : row.says);

function brokerRow(row, existing) {
  return tableRow(existing, BROKERS, [
    h("span", { class: "mono" }, row.broker), both(row.found_leader, row.found_follower), both(row.wanted_leader, row.wanted_follower),
    row.since_ms === null ? "–" : age(row.since_ms), says(row),
  ], { class: row.is_stray ? "stray" : null });
}

const plain = (value) => (value === null ? "none" : typeof value === "number" ? count(value) : String(value));

function limitRow(row, existing) {
  return tableRow(existing, LIMITS, [h("span", { class: "mono" }, row.name), plain(row.value), row.by === null ? "" : plain(row.settings_value),
    row.by === null ? "the settings" : [h("bdi", {}, row.by), " · “", h("bdi", {}, row.reason), "” · ", age(row.since_ms), " ago"], row.about]);
}

function topicRow(row, existing) {
  return tableRow(existing, TOPICS, [h("span", { class: "mono" }, row.topic), entries(row.leader_entries), entries(row.follower_entries), says(row)],
    { class: row.is_stray ? "stray" : null });
}

function entries(list) {
  if (!list.length) return "none";
  const shown = list.slice(0, 12).join(" ");
  return h("span", { class: "mono wrap" }, shown, list.length > 12 ? ` and ${count(list.length - 12)} more` : "");
}
