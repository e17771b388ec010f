/* A service worker: the book without a network, for readers who have asked to keep it. Served as sw.js.

   The network comes first, so that nobody reads an old page while a new one can be had. */

"use strict";

const KEPT = "attention-by-hand";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(self.registration.scope)) return;
  const answer = async () => {
    const cache = await caches.open(KEPT);
    try {
      const fresh = await fetch(request);
      if (fresh.ok && await cache.match(request, { ignoreSearch: true })) await cache.put(request.url.split(/[?#]/)[0], fresh.clone());
      return fresh;
    } catch (error) {
      const address = request.url.split(/[?#]/)[0];
      const kept = await cache.match(address.endsWith("/") ? `${address}index.html` : address);
      if (kept) return kept;
      throw error;
    }
  };
  event.respondWith(answer());
});
