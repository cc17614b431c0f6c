// The server: methods of percs.v1.Control as JSON, and the feed of Server-Sent Events. The feed is
// read with fetch, because EventSource cannot send the token.
import { type Json, type JsonObject, object, parse, text } from "./json";

const token = decodeURIComponent(location.hash.slice(1));
const RETRY_MS = 1000;

export class ApiError extends Error {}

async function refusal(response: Response): Promise<ApiError> {
  const body = await response.text();
  try {
    return new ApiError(text(object(parse(body))["message"]) || body);
  } catch {
    return new ApiError(`${response.status} ${body}`);
  }
}

export async function call(method: string, request: JsonObject = {}): Promise<JsonObject> {
  const response = await fetch(`/api/${method}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Percs-Token": token },
    body: JSON.stringify(request),
  });
  if (!response.ok) throw await refusal(response);
  return object(parse(await response.text()));
}

export interface Feed {
  message(kind: string, data: Json): void;
  connected(): void;
  lost(why: string): void;
}

/** Reads for ever; after an error it begins again, with a snapshot. */
export async function follow(feed: Feed): Promise<never> {
  for (;;) {
    try {
      const response = await fetch("/api/events", { headers: { "X-Percs-Token": token } });
      if (!response.ok || response.body === null) throw await refusal(response);
      feed.connected();
      await readMessages(response.body, (kind, data) => feed.message(kind, data));
      feed.lost("the controller has closed the connection");
    } catch (error) {
      feed.lost(error instanceof ApiError ? error.message : "the controller does not answer");
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** Messages of the feed, until its end. */
export async function readMessages(body: ReadableStream<Uint8Array>, take: (kind: string, data: Json) => void): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const match = /^event: (\w+)\ndata: (.*)$/s.exec(part);
      if (match) take(match[1] ?? "", parse(match[2] ?? "null"));
    }
  }
}
