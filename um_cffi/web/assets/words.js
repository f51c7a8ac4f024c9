// Numbers, times and levels in words.

export const LEVELS = {
  ok: { tone: "ok", mark: "●", word: "fine" },
  waits: { tone: "warn", mark: "◐", word: "waits" },
  missed: { tone: "warn", mark: "▲", word: "misses datagrams" },
  lost: { tone: "bad", mark: "▲", word: "loses messages" },
  silent: { tone: "bad", mark: "✕", word: "silent" },
  gone: { tone: "none", mark: "○", word: "gone" },
  empty: { tone: "none", mark: "○", word: "nothing yet" },
};
export const MARKS = { bad: "▲", warn: "▲", info: "·" };
export const level = (name) => LEVELS[name] || LEVELS.empty;

export function amount(value, digits = 1) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  for (const [limit, divisor, unit] of [[1e4, 1, ""], [1e6, 1e3, "k"], [1e9, 1e6, "M"], [Infinity, 1e9, "G"]]) {
    if (size < limit) {
      const number = value / divisor;
      const places = divisor === 1 ? (size >= 100 || Number.isInteger(value) ? 0 : digits) : digits;
      return number.toLocaleString("en", { maximumFractionDigits: places }) + unit;
    }
  }
  return String(value);
}

export const clock = (seconds) =>
  new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function lasting(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const hours = Math.floor(whole / 3600);
  return hours < 48 ? `${hours} h ${Math.floor((whole % 3600) / 60)} min` : `${Math.floor(hours / 24)} days`;
}

export const many = (number, one, more = one + "s") => `${number.toLocaleString("en")} ${number === 1 ? one : more}`;
export const kind = (name) => name.replace("_", " ");
