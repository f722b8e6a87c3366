// Runs models in Node: a line of JSON names a file and its inputs, one gives its outputs.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const ARRAYS = { float32: Float32Array, int32: Int32Array, uint8: Uint8Array };
const NAMES = new Map(Object.entries(ARRAYS).map(([name, kind]) => [kind, name]));
const models = new Map();

async function answer({ path, inputs, again }) {
  const { Model } = await import(pathToFileURL(path));
  const model = (again && models.get(path)) || (await Model.load());
  models.set(path, model);
  const given = Object.fromEntries(
    inputs.map(([name, kind, text]) => {
      const bytes = Uint8Array.from(Buffer.from(text, "base64"));
      return [name, new ARRAYS[kind](bytes.buffer)];
    }),
  );
  const outputs = Object.entries(model.forward(given));
  return outputs.map(([name, { data, shape }]) => {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    return [name, NAMES.get(data.constructor), bytes.toString("base64"), shape];
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  let found;
  try {
    found = { outputs: await answer(JSON.parse(line)) };
  } catch (error) {
    found = { error: String(error) };
  }
  console.log(JSON.stringify(found));
}
