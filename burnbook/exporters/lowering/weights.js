/** The bytes of a text in base64. */
function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** The bytes of a file beside this one, in a browser or in Node. */
async function bytesBeside(name) {
  const place = new URL(encodeURIComponent(name), import.meta.url);
  if (place.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return new Uint8Array(await readFile(place));
  }
  const answer = await fetch(place);
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** Weights from bytes: [name, how they are written, where, how many, the step of codes]. */
function unpacked(bytes, table) {
  bytes = new Uint8Array(bytes);
  const weights = {};
  for (const [name, form, start, count, scale] of table) {
    const width = { f32: 4, i32: 4, f16: 2 }[form] ?? 1;
    if (start + count * width > bytes.length) throw new Error("the weights are cut off");
    const part = bytes.slice(start, start + count * width).buffer;
    if (form === "f32") weights[name] = new Float32Array(part);
    else if (form === "i32") weights[name] = new Int32Array(part);
    else if (form === "bool") weights[name] = new Uint8Array(part);
    else if (form === "f16") weights[name] = Float32Array.from(new Uint16Array(part), half);
    else weights[name] = Float32Array.from(new Int8Array(part), (code) => code * scale);
  }
  return weights;
}

/** The number that 16 bits stand for. */
function half(bits) {
  const exponent = (bits >> 10) & 31;
  const digits = bits & 1023;
  const size =
    exponent === 31
      ? digits ? NaN : Infinity
      : exponent ? 2 ** (exponent - 15) * (1 + digits / 1024) : 2 ** -24 * digits;
  return bits & 0x8000 ? -size : size;
}

/** The batch size of inputs with so many elements; shapes: those that they are made for. */
function batchOf(inputs, given) {
  let n;
  for (const [name, { scale, offset, shape }] of Object.entries(inputs)) {
    if (!Object.hasOwn(given, name)) throw new Error(`the input ${name} is missing: ${shape}`);
    const found = scale ? (given[name].length - offset) / scale : undefined;
    const fits = scale
      ? Number.isInteger(found) && found >= 0 && (n === undefined || n === found)
      : given[name].length === offset;
    if (!fits) {
      throw new Error(`${name} has ${given[name].length} numbers; it is made for ${shape}`);
    }
    if (scale) n = found;
  }
  return n ?? 1;
}
