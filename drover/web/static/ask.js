// Questions to the page's own server. An answer that is none is an object with `error`, in words.

const JSON_TYPE = { "Content-Type": "application/json" };
const NOT_UNDERSTOOD = { 404: "This page was started without what could answer that" };
const SILENT = { error: "The page's server does not answer" };

async function read(path, options) {
  const answer = await fetch(path, options).catch(() => null);
  if (answer === null) return { status: 0, found: SILENT };
  const found = await answer
    .json()
    .catch(() => ({ error: NOT_UNDERSTOOD[answer.status] ?? `The server answers ${answer.status}` }));
  return { status: answer.status, found };
}

export async function ask(path, parameters) {
  const { found } = await read(`${path}?${new URLSearchParams(parameters)}`);
  return found;
}

export function post(path, body, headers = {}) {
  return read(path, { method: "POST", headers: { ...JSON_TYPE, ...headers }, body: JSON.stringify(body) });
}
