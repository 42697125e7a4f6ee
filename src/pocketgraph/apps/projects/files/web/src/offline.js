// Keeps the page for when there is no network; a new build has another version, and replaces it as a whole.
const KEPT = "page-VERSION_OF_FILES";
const FILES = [/* files */];

// The server is asked for each file, as the browser may still hold those of the build before.
self.addEventListener("install", (event) => {
  const asked = FILES.map((file) => new Request(file, { cache: "no-cache" }));
  event.waitUntil(caches.open(KEPT).then((kept) => kept.addAll(asked)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(caches.keys()
    .then((names) => Promise.all(names.filter((name) => name !== KEPT).map((name) => caches.delete(name))))
    .then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== location.origin) return;
  event.respondWith(caches.match(event.request, { ignoreSearch: true }).then((found) => found ?? fetch(event.request)));
});
