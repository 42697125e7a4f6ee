// Puts the page, the model and LiteRT.js together in dist/, which any web server can serve; nothing is loaded from elsewhere.
import { createHash } from "node:crypto";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const OUT = "dist", LITERT = "node_modules/@litertjs";

await rm(OUT, { recursive: true, force: true });
await mkdir(join(OUT, "litert"), { recursive: true });
for (const name of await readdir("src")) await cp(join("src", name), join(OUT, name));
for (const name of await readdir("public")) await cp(join("public", name), join(OUT, name), { recursive: true });
// A page under a strict Content-Security-Policy has no import map: modules are named by where they lie.
const core = await readFile(join(LITERT, "core/dist/index.js"), "utf8");
await writeFile(join(OUT, "litert/core.js"), core.replaceAll('"@litertjs/wasm-utils"', '"./wasm-utils.js"'));
await cp(join(LITERT, "wasm-utils/dist/index.js"), join(OUT, "litert/wasm-utils.js"));
await cp(join(LITERT, "core/wasm"), join(OUT, "litert/wasm"), { recursive: true });

// What the page needs without a network: all but the builds of LiteRT.js that it never asks for.
const files = [];
async function walk(folder, prefix) {
  for (const entry of (await readdir(folder, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.isDirectory()) await walk(join(folder, entry.name), `${prefix}${entry.name}/`);
    else if (entry.name !== "offline.js" && !/jspi|test\.|golden_/.test(entry.name)) files.push(prefix + entry.name);
  }
}
await walk(OUT, "");
const digest = createHash("sha256");
for (const file of files) digest.update(file).update(await readFile(join(OUT, file)));
const worker = (await readFile("src/offline.js", "utf8"))
  .replace("VERSION_OF_FILES", digest.digest("hex").slice(0, 16))
  .replace("[/* files */]", JSON.stringify(["./", ...files.filter((file) => file !== "index.html")]));
await writeFile(join(OUT, "offline.js"), worker);
console.log(`${OUT}/: ${files.length + 1} files; serve it over https, or look at it with: npm start`);
