// A page with messages of the feed in it: one HTML file that needs no server. The button Save writes
// one with what is shown; `percsctl view` writes one with a whole run.
import { type Json, type JsonObject } from "./json";
import { readMessages } from "./wire";

export type Message = [kind: string, data: Json];

const DATA = "recorded";
const POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

// Base64 of gzip of messages, as they come from the feed.
const packed = document.getElementById(DATA)?.textContent ?? "";

/** Whether this file has messages in it. */
export const recorded = packed !== "";

export async function recordedMessages(): Promise<Message[]> {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const messages: Message[] = [];
  await readMessages(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")),
    (kind, data) => messages.push([kind, data]));
  return messages;
}

async function pack(message: JsonObject): Promise<string> {
  const text = `event: snapshot\ndata: ${JSON.stringify(message)}\n\n`;
  const bytes = await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
  return btoa(Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join(""));
}

// Nothing in a script or style may look like its end.
function inside(tag: string, attributes: string, text: string): string {
  return `<${tag}${attributes}>${text.replaceAll("</", "<\\/").replaceAll("<!--", "<\\!--")}</${tag}>`;
}

async function own(path: string): Promise<string> {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.text();
}

export async function saveAs(name: string, snapshot: JsonObject): Promise<void> {
  const [page, style, script, data] = await Promise.all([own("/"), own("/page.css"), own("/page.js"), pack(snapshot)]);
  const [head = "", rest = ""] = page.split('<link rel="stylesheet" href="page.css">');
  const [body = "", end = ""] = rest.split('<script src="page.js"></script>');
  const html = head + `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`
    + inside("style", "", style) + body
    + inside("script", ` type="text/plain" id="${DATA}"`, data) + inside("script", "", script) + end;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
