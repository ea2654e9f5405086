// Acting: what a command would mean is shown at an offset, sent under an id with a reason, and answered by the log.

import { ask, post } from "./ask.js";
import { h, replace } from "./dom.js";
import { count, plural, setting } from "./format.js";
import { href } from "./address.js";

const TYPING_MS = 300;
let session = { user: null, token: null, why: null };

// The actions by what they are about; `more` names the field that a command needs besides.
const CANCELS = [
  { word: "Roll back", command: { type: "cancel", mode: "rollback" } },
  { word: "Stop", command: { type: "cancel", mode: "stop" } },
];
const ACTIONS = {
  cluster: [
    { word: "Freeze", command: { type: "freeze" } },
    { word: "Unfreeze", command: { type: "unfreeze" } },
    { word: "End everyone's freezes", command: { type: "unfreeze", all: true } },
    { word: "Roll back everything", command: { type: "cancel", mode: "rollback", all: true } },
    { word: "Stop everything", command: { type: "cancel", mode: "stop", all: true } },
    { word: "Change a limit", command: { type: "limits" }, more: "value" },
    { word: "Reset a limit", command: { type: "limits" }, more: "reset" },
  ],
  plan: [
    ...CANCELS,
    { word: "Pause", command: { type: "pause" } },
    { word: "Resume", command: { type: "resume" } },
    { word: "Throttle", command: { type: "throttle" }, more: "rate" },
  ],
  broker: [
    { word: "Hold", command: { type: "hold-broker" } },
    { word: "Hold as a destination", command: { type: "hold-broker", role: "destination" } },
    { word: "Hold as a source", command: { type: "hold-broker", role: "source" } },
    { word: "Release", command: { type: "release-broker" } },
  ],
  partition: CANCELS,
};
// Beyond these it is probably a mistake of units; the command line takes it with --force.
const LEAST_RATE = 1e3;
const MOST_RATE = 1e11;
const UNITS = { "": 1, B: 1, KB: 1e3, MB: 1e6, GB: 1e9, KIB: 2 ** 10, MIB: 2 ** 20, GIB: 2 ** 30 };

export async function begin(show) {
  const found = await ask("api/session", {});
  if (!found.error) session = found;
  show(session);
}

export const mayAct = () => session.token !== null;

// What a dialog is about: a plan, a partition, a broker, or the whole cluster; its kind, and its name.
function subject(about) {
  const kind = ["partition", "plan", "broker"].find((one) => about[one] !== undefined) ?? "cluster";
  return { kind, name: String(about[kind]) };
}

// A button that opens the dialog; nothing where nobody may act.
export function button(about) {
  if (!mayAct()) return null;
  const { kind, name } = subject(about);
  const label = kind === "broker" ? `Act on broker ${name}` : `Act on ${name}`;
  return h("button", { type: "button", class: "act", "aria-label": label, onclick: () => open(about) }, "Act…");
}

function newId(type) {
  const random = [...crypto.getRandomValues(new Uint8Array(4))]
    .map((one) => one.toString(16).padStart(2, "0"))
    .join("");
  return `${type}-${new Date().toISOString().slice(0, 19).replace(/[-:]/g, "")}-${random}`;
}

function bytesOf(text) {
  const [, number, unit] = /^\s*([\d.]+)\s*([kKmMgG]?[iI]?[bB]?)(?:\/s)?\s*$/.exec(text) ?? [];
  const factor = UNITS[(unit ?? "").toUpperCase()];
  const bytes = number && factor ? Math.round(Number(number) * factor) : 0;
  return bytes >= LEAST_RATE && bytes <= MOST_RATE ? bytes : null;
}

// As a limit takes it: a number in the unit of its name, true or false, none, or a word.
function valueOf(text) {
  const typed = text.trim();
  if (/^-?\d{1,15}$/.test(typed)) return Number(typed);
  return (
    { true: true, false: false, none: null }[typed.toLowerCase()] ??
    (typed.toLowerCase() === "none" ? null : typed || undefined)
  );
}

async function loadLimits({ about, limit, chosen }) {
  const { limits = [] } = await ask("api/document", { view: "throttles", cluster: about.cluster });
  const rows = limits.filter((row) => chosen.more === "value" || row.by !== null);
  const before = limit.lastChild.value;
  replace(
    limit.lastChild,
    rows.map((row) =>
      h(
        "option",
        { value: row.name, title: row.about },
        `${row.name} (${setting(row.value)}${row.by === null ? "" : `, by ${row.by}`})`,
      ),
    ),
  );
  if (rows.some((row) => row.name === before)) limit.lastChild.value = before;
}

function scope(about) {
  if (about.partition) {
    const at = about.partition.lastIndexOf(":");
    return { partitions: [{ topic: about.partition.slice(0, at), partition: Number(about.partition.slice(at + 1)) }] };
  }
  if (about.broker !== undefined) return { broker: about.broker };
  return about.plan ? { plan: about.plan } : {};
}

const send = (path, body) => post(path, body, { "X-Drover-Token": session.token });

export function open(about) {
  const dialog = document.getElementById("act");
  const { kind, name } = subject(about);
  const actions = ACTIONS[kind];
  const form = {
    about,
    dialog,
    actions,
    chosen: null,
    trial: null,
    id: null,
    asking: 0,
    choices: h("div", { class: "shows", role: "radiogroup", "aria-label": "Action" }),
    rate: h(
      "label",
      { hidden: true },
      "Bytes per second and broker ",
      h("input", { id: "act-rate", placeholder: "40MB", autocomplete: "off", spellcheck: false }),
    ),
    limit: h("label", { hidden: true }, "Limit, and what holds now ", h("select", { id: "act-limit" })),
    value: h(
      "label",
      { hidden: true },
      "New value: a number in the unit of its name, true, false, none, or a word ",
      h("input", { id: "act-value", autocomplete: "off", spellcheck: false }),
    ),
    meaning: h("div", { class: "meaning", "aria-live": "polite" }),
    reason: h("input", { id: "act-reason", required: true, maxLength: 1000, autocomplete: "off" }),
    word: h("label", { hidden: true }),
    send: h("button", { type: "submit", class: "strong", disabled: true }, "Send"),
    verdict: h("div", { class: "recorded", role: "status" }),
  };
  replace(
    form.choices,
    actions.map((action) =>
      h(
        "label",
        { class: "choice" },
        h("input", { type: "radio", name: "action", onchange: () => choose(form, action) }),
        action.word,
      ),
    ),
  );
  let typing = null;
  const soon = () => {
    forget(form);
    clearTimeout(typing);
    typing = setTimeout(() => look(form), TYPING_MS);
  };
  for (const field of [form.rate, form.limit, form.value]) field.lastChild.addEventListener("input", soon);
  form.reason.addEventListener("input", () => ready(form));
  form.word.addEventListener("input", () => ready(form));
  const fields = h(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        submit(form);
      },
    },
    form.choices,
    form.rate,
    form.limit,
    form.value,
    form.meaning,
    h("label", {}, "Reason, kept in the log for ever ", form.reason),
    form.word,
    h(
      "p",
      { class: "buttons" },
      form.send,
      h("button", { type: "button", onclick: () => dialog.close() }, "Close"),
      h("span", { class: "quiet" }, `as ${session.user}`),
    ),
    form.verdict,
  );
  replace(dialog, h("h2", { id: "act-title" }, `Act on ${kind} `, h("span", { class: "mono" }, name)), fields);
  dialog.showModal();
  return form;
}

// What was shown is of another command than what the fields say now: nothing can be sent until it is shown anew.
function forget(form) {
  form.trial = null;
  form.asking += 1;
  ready(form);
}

async function choose(form, action) {
  forget(form);
  form.chosen = action;
  form.rate.hidden = action.more !== "rate";
  form.limit.hidden = !["value", "reset"].includes(action.more);
  form.value.hidden = action.more !== "value";
  form.verdict.replaceChildren();
  form.meaning.replaceChildren();
  if (!form.limit.hidden) await loadLimits(form);
  look(form);
}

// What a command needs besides its scope; null while something is missing.
function fieldsOf(form) {
  const name = form.limit.lastChild.value;
  if (form.chosen.more === "rate") {
    const rate = bytesOf(form.rate.lastChild.value);
    return rate === null ? null : { bytes_per_second: rate };
  }
  if (form.chosen.more === "reset") return name ? { reset: [name] } : null;
  if (form.chosen.more === "value") {
    const value = valueOf(form.value.lastChild.value);
    return name && value !== undefined ? { values: { [name]: value } } : null;
  }
  return {};
}

const MISSING = {
  rate: "Say the rate, from 1 kB to 100 GB: 40MB, 512KiB, or a number of bytes.",
  value: "Say the new value.",
  reset: "The settings hold for every limit: there is nothing to reset.",
};

function command({ about, chosen }, fields) {
  return { ...chosen.command, ...(chosen.command.all ? {} : scope(about)), ...fields, cluster: about.cluster };
}

async function look(form) {
  forget(form);
  form.id = newId(form.chosen.command.type);
  form.reason.readOnly = false;
  const fields = fieldsOf(form);
  const number = form.asking;
  if (fields === null) return replace(form.meaning, h("p", { class: "quiet" }, MISSING[form.chosen.more]));
  const asked = command(form, fields);
  const { found } = await send("api/trial", { command: asked });
  if (number !== form.asking) return null;
  return show(form, asked, found);
}

function show(form, asked, found) {
  if (found.error) return replace(form.meaning, h("p", { class: "bad" }, found.error));
  form.trial = found.trial;
  form.asked = asked;
  const { word } = found;
  form.word.hidden = !word;
  if (word && form.word.dataset.word !== word)
    replace(
      form.word,
      "Type ",
      h("b", {}, word),
      " to go on ",
      h("input", { id: "act-word", autocomplete: "off", spellcheck: false }),
    );
  form.word.dataset.word = word ?? "";
  replace(
    form.meaning,
    h(
      "p",
      { class: "quiet" },
      `As of log ${found.shard}@${found.offset}, this is about ${plural(found.partitions, "partition")}:`,
    ),
    found.refusals.map((text) => h("p", { class: "bad" }, "It would be refused: ", text)),
    found.groups.map((group) =>
      h(
        "section",
        {},
        h("h3", {}, `${count(group.count)} `, h("span", {}, group.what)),
        h(
          "ul",
          { class: "mono" },
          group.topics.map((one) => h("li", {}, h("b", {}, one.topic), ` ${one.partitions}`)),
        ),
      ),
    ),
    found.remarks.map((text) => h("p", { class: "quiet" }, text)),
    h("p", { class: "quiet" }, "Its id: ", h("code", {}, form.id)),
  );
  return ready(form);
}

function ready(form) {
  const word = form.word.dataset.word ?? "";
  const typed = form.word.querySelector("input")?.value ?? "";
  form.send.disabled = form.trial === null || form.isSending || !form.reason.value.trim() || (word && typed !== word);
}

async function submit(form) {
  if (form.send.disabled) return;
  form.isSending = true;
  ready(form);
  const { id } = form;
  replace(form.verdict, h("p", { class: "quiet" }, "Sent. What the log records of it will stand here…"));
  const body = {
    command: { ...form.asked, id, reason: form.reason.value.trim() },
    trial: form.trial,
    word: form.word.querySelector("input")?.value ?? "",
  };
  const { status, found } = await send("api/command", body);
  form.isSending = false;
  const story = h(
    "a",
    { href: href({ view: "story", cluster: form.about.cluster, id }), onclick: () => form.dialog.close() },
    "its story",
  );
  if (status === 200) replace(form.verdict, recorded(found.outcome), h("p", {}, story));
  else if (status === 202)
    replace(
      form.verdict,
      h(
        "p",
        { class: "warn" },
        "The command is in its topic and remains valid, but nothing was recorded of it yet: nobody has decided it. Send asks again, under the same id. ",
        story,
      ),
    );
  else replace(form.verdict, h("p", { class: "bad" }, found.error));
  if (found.shown) show(form, form.asked, found.shown);
  // What may be in the log under this id stays as it is: with another reason it would be another command.
  form.reason.readOnly = status !== 200 && !(status >= 400 && status < 500);
  // What was decided is decided: another command has an id of its own.
  if (status === 200) {
    form.trial = null;
    form.id = null;
  }
  ready(form);
}

function recorded(outcome) {
  const facts = [
    outcome.accepted.length && plural(outcome.accepted.length, "partition"),
    outcome.unchanged.length && `${outcome.unchanged.length} as before`,
    outcome.deferred.length && `${outcome.deferred.length} deferred by a guard`,
    outcome.repeated && "decided before, under this id",
  ].filter(Boolean);
  return [
    h(
      "p",
      {},
      h("b", { class: `verdict ${outcome.verdict}` }, outcome.verdict),
      facts.length ? ` · ${facts.join(" · ")}` : "",
      h("span", { class: "quiet" }, ` · recorded at log ${outcome.shard}@${outcome.offset}`),
    ),
    outcome.remarks.map((text) => h("p", { class: "quiet" }, text)),
    outcome.refusals
      .slice(0, 20)
      .map((one) =>
        h(
          "p",
          {},
          h(
            "b",
            { class: "bad" },
            one.topic === null
              ? one.code
              : `${one.topic}${one.partition === null ? "" : `:${one.partition}`} ${one.code}`,
          ),
          ` ${one.detail}`,
        ),
      ),
    outcome.refusals.length > 20 &&
      h("p", { class: "quiet" }, `and ${count(outcome.refusals.length - 20)} more refusals`),
  ];
}
