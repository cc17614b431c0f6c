// Numbers for people, each with its unit.
const TIME_UNITS: [number, string][] = [[1e12, "s"], [1e9, "ms"], [1e6, "us"], [1e3, "ns"], [1, "ps"]];

/** Virtual picoseconds. */
export function virtualTime(ps: number): string {
  const [size, unit] = TIME_UNITS.find(([s]) => Math.abs(ps) >= s) ?? [1, "ps"];
  return `${short(ps / size)} ${unit}`;
}

export function short(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15) return value.toExponential(2);
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? Math.ceil(Math.log10(size)) : 4 });
}

export function count(value: number): string {
  return Math.round(value).toLocaleString("en");
}

/** "1 packet", "2,345 packets". */
export function counted(value: number, unit: string): string {
  return `${count(value)} ${unit}${Math.round(value) === 1 ? "" : "s"}`;
}

export function scaled(value: number, unit: string): string {
  const steps: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [size, prefix] = steps.find(([s]) => Math.abs(value) >= s) ?? [1, ""];
  return `${short(value / size)} ${prefix}${unit}`;
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(share > 0 && share < 0.1 ? 2 : 1)} %`;
}
