// A small server for looking at dist/ on this machine; the Cross-Origin headers let LiteRT.js use threads.
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize, sep } from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".json": "application/json",
  ".webmanifest": "application/manifest+json", ".wasm": "application/wasm", ".png": "image/png", ".svg": "image/svg+xml",
};
const POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'";
const port = Number(process.argv[2] ?? 8080);

// The file that an address stands for; nothing where there is none.
function fileOf(address) {
  let name;
  try {
    name = normalize(decodeURIComponent(new URL(`http://localhost${address}`).pathname));
  } catch {
    return null;
  }
  const file = join("dist", name, name.endsWith(sep) ? "index.html" : "");
  return !name.split(sep).includes("..") && existsSync(file) && statSync(file).isFile() ? file : null;
}

createServer((request, response) => {
  const file = fileOf(request.url);
  if (!file) { response.writeHead(404).end("there is nothing here\n"); return; }
  response.writeHead(200, {
    "Content-Type": TYPES[extname(file)] ?? "application/octet-stream",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cache-Control": "no-cache",
  });
  createReadStream(file).on("error", () => response.destroy()).pipe(response);
}).on("error", (error) => {
  console.error(error.code === "EADDRINUSE" ? `port ${port} is taken; another one: npm start -- ${port + 1}` : error.message);
  process.exit(1);
}).listen(port, "127.0.0.1", function () { console.log(`http://localhost:${this.address().port}/`); });
