// Two pages, built apart; while developing, /api is the server that `streamnorm serve` started.
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  base: "./",
  build: { rollupOptions: { input: ["ai-sdk.html", "ag-ui.html"] } },
  server: { proxy: { "/api": "http://127.0.0.1:8765" } },
});
