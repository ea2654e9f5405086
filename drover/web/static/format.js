// Numbers and moments as people read them; the same units as the command line.

export function amount(count) {
  for (const [unit, size] of [
    ["TB", 1e12],
    ["GB", 1e9],
    ["MB", 1e6],
    ["kB", 1e3],
  ]) {
    if (Math.abs(count) >= size) return `${(count / size).toFixed(1)}\u00a0${unit}`;
  }
  return `${Math.round(count)}\u00a0B`;
}

export const rate = (count) => (count === null || count === undefined ? "–" : `${amount(count)}/s`);

export function duration(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds}\u00a0s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}\u00a0min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}\u00a0h ${Math.floor((seconds % 3600) / 60)}\u00a0min`;
  return `${Math.floor(seconds / 86400)}\u00a0d ${Math.floor((seconds % 86400) / 3600)}\u00a0h`;
}

const two = (number) => String(number).padStart(2, "0");

export function clock(ms, seconds = true) {
  const at = new Date(ms);
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return seconds ? `${time}:${two(at.getSeconds())}` : time;
}

export function moment(ms) {
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(ms)}`;
}

export const count = (number) => Number(number).toLocaleString("en");
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
export const percent = (done, total) => (total ? Math.min(100, (done / total) * 100) : 0);

// The value of a limit.
export const setting = (value) => (value === null ? "none" : typeof value === "number" ? count(value) : String(value));
