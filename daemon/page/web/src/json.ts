// Values that came over the wire. protobuf writes 64-bit numbers as text and leaves out zeros.
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export function parse(text: string): Json {
  const value: Json = JSON.parse(text);
  return value;
}

export function object(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

export function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

export function num(value: Json | undefined): number {
  return typeof value === "number" || typeof value === "string" ? Number(value) : 0;
}

export function has(value: JsonObject, key: string): boolean {
  return value[key] !== undefined && value[key] !== null;
}
