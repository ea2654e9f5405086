// One stream per view: a snapshot, then differences. It comes back by itself and says since when it was cut.

import { ask } from "./ask.js";

const SILENT_MS = 6000;
const RETRY_MS = 1500;

export function apply(before, change) {
  const after = { ...before, ...(change.set ?? {}) };
  for (const name of change.drop ?? []) delete after[name];
  for (const [name, table] of Object.entries(change.tables ?? {})) {
    const rows = new Map(after[name].map((row) => [row.key, row]));
    for (const row of table.put ?? []) rows.set(row.key, row);
    after[name] = table.order ? table.order.map((key) => rows.get(key)) : after[name].map((row) => rows.get(row.key));
  }
  return after;
}

export class Stream {
  constructor({ onDocument, onStanding }) {
    this.onDocument = onDocument;
    this.onStanding = onStanding;
    this.source = null;
    this.document = null;
    this.heard = Date.now();
    this.cutSince = null;
    this.lastId = "";
    setInterval(() => this.#watch(), 1000);
    // A browser keeps six connections to a host: tabs that nobody sees must not keep them from others.
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#rest() : this.#wake()));
  }

  open(query) {
    this.query = query;
    this.document = null;
    this.lastId = "";
    this.#connect();
  }

  #connect() {
    this.source?.close();
    // The browser sends the last id by itself only when it comes back on its own.
    const after = this.lastId ? { after: this.lastId } : {};
    const source = new EventSource(`api/stream?${new URLSearchParams({ ...this.query, ...after })}`);
    this.source = source;
    this.heard = Date.now();
    source.addEventListener("snapshot", (event) => this.#take(source, event, (data) => data));
    source.addEventListener("change", (event) => this.#take(source, event, (data) => apply(this.document, data)));
    source.addEventListener("beat", (event) => {
      if (source !== this.source) return;
      this.heard = Date.now();
      this.cutSince = null;
      this.onStanding({ ...JSON.parse(event.data), received_ms: Date.now() });
    });
    source.addEventListener("error", () => {
      if (source !== this.source) return;
      this.#cut();
      // The browser tries again by itself, unless the server refused.
      if (source.readyState === EventSource.CLOSED) {
        this.source = null;
        this.#askWhy();
        setTimeout(() => this.#wake(), RETRY_MS);
      }
    });
  }

  #rest() {
    this.source?.close();
    this.source = null;
  }

  #wake() {
    if (this.source === null && this.query && !document.hidden) this.#connect();
  }

  // A stream that is refused does not say why; the same question, asked once, does.
  async #askWhy() {
    const { error } = await ask("api/document", this.query);
    if (error && this.source === null) this.#cut(error);
  }

  #take(source, event, next) {
    if (source !== this.source) return;
    this.heard = Date.now();
    this.lastId = event.lastEventId;
    this.document = next(JSON.parse(event.data));
    this.onDocument(this.document);
  }

  #cut(why = null) {
    this.cutSince ??= this.heard;
    this.onStanding(null, this.cutSince, why);
  }

  #watch() {
    if (this.source === null || Date.now() - this.heard < SILENT_MS) return;
    this.#cut();
    this.#connect();
    this.heard = Date.now();
  }
}
