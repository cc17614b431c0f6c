// A saved page: one HTML file with what was known when it was saved, which needs no server.
import { type Json, parse } from "./json";

const DATA = "saved";
const POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

/** What this file was saved with; undefined on a page that a controller serves. */
export function savedData(): Json | undefined {
  const data = document.getElementById(DATA)?.textContent;
  return data ? parse(data) : undefined;
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

export async function saveAs(name: string, data: Json): Promise<void> {
  const [page, style, script] = await Promise.all([own("/"), own("/page.css"), own("/page.js")]);
  const [head = "", rest = ""] = page.split('<link rel="stylesheet" href="page.css">');
  const [body = "", end = ""] = rest.split('<script src="page.js"></script>');
  const html = head + `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`
    + inside("style", "", style) + body
    + inside("script", ` type="application/json" id="${DATA}"`, JSON.stringify(data)) + inside("script", "", script) + end;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
