// Runs a file in MicroPython's WebAssembly build: node wasm.mjs PACKAGE FILE CODE
import fs from "fs";
import path from "path";
import { pathToFileURL } from "url";

const [folder, file, code] = process.argv.slice(2);
const url = pathToFileURL(path.join(folder, "micropython.mjs"));
const { loadMicroPython } = await import(url.href);
const machine = await loadMicroPython({ heapsize: 1 << 20, stdout: console.log, linebuffer: true });
machine.FS.writeFile("/" + path.basename(file), fs.readFileSync(file));
machine.runPython("import sys; sys.path.append('/')\n" + fs.readFileSync(code, "utf8"));
