/** The model on a device of WebGPU: its weights, its kernels, its memory. */
export class Model {
  /**
   * device: a GPUDevice; if none is given, one is asked for. bytes: those of the
   * weights, where they come from somewhere else.
   */
  static async load(device, bytes) {
    device ??= await newDevice();
    const weights = unpacked(bytes ?? LOADED, TABLE);
    const pipelines = {};
    for (const [label, code] of Object.entries(KERNELS)) {
      const module = device.createShaderModule({ label, code });
      const compute = { module, entryPoint: "main" };
      const layout = "auto";
      pipelines[label] = await device.createComputePipelineAsync({ label, layout, compute });
    }
    return new Model(device, weights, pipelines);
  }

  constructor(device, weights, pipelines) {
    this.device = device;
    this.pipelines = pipelines;
    this.n = -1;
    this.held = new Map();
    for (const [name, array] of Object.entries(weights)) {
      this.held.set(name, this.buffer(array.length));
      const data = array instanceof Uint8Array ? Uint32Array.from(array) : array;
      if (data.length) device.queue.writeBuffer(this.held.get(name), 0, data);
    }
    const usage = GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST;
    this.batch = device.createBuffer({ label: "batch", size: 16, usage });
  }

  /** A buffer for so many numbers. */
  buffer(count) {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    return this.device.createBuffer({ size: 4 * Math.max(count, 1), usage });
  }

  /** Make room for a batch of n, and bind every kernel to it; smaller ones fit as well. */
  reserve(n) {
    if (n <= this.n) return;
    this.n = n;
    for (const old of this.room ?? []) old.destroy();
    const named = new Map(this.held);
    for (const { name, scale, offset } of Object.values(INPUTS)) {
      named.set(name, this.buffer(n * scale + offset));
    }
    BUFFERS(n).forEach((count, i) => named.set(`b${i}`, this.buffer(count)));
    this.named = named;
    this.room = [...named].filter(([name]) => !this.held.has(name)).map(([, one]) => one);
    this.groups = STEPS.map(({ kernel, bind }) => {
      const layout = this.pipelines[kernel].getBindGroupLayout(0);
      const entries = bind.map((name, binding) => ({
        binding,
        resource: { buffer: name === null ? this.batch : named.get(name) },
      }));
      return this.device.createBindGroup({ layout, entries });
    });
  }

  /**
   * inputs: flat arrays by name. The results by name: { data, shape }.
   */
  async forward(inputs) {
    const only = Object.keys(INPUTS);
    const isOne = ArrayBuffer.isView(inputs) || Array.isArray(inputs);
    if (isOne && only.length === 1) inputs = { [only[0]]: inputs };
    const n = batchOf(INPUTS, inputs);
    this.reserve(n);
    const { device } = this;
    device.queue.writeBuffer(this.batch, 0, new Uint32Array([n, 0, 0, 0]));
    for (const [key, { name, type }] of Object.entries(INPUTS)) {
      const isBool = type === "bool";
      const data = ARRAYS[type].from(inputs[key], isBool ? Boolean : undefined);
      if (data.length) device.queue.writeBuffer(this.named.get(name), 0, data);
    }
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    STEPS.forEach(({ kernel, groups }, i) => {
      pass.setPipeline(this.pipelines[kernel]);
      pass.setBindGroup(0, this.groups[i]);
      pass.dispatchWorkgroups(...groups(n));
    });
    pass.end();
    const reads = OUTPUTS(n).map((output) => {
      const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
      const size = 4 * output.count;
      const read = device.createBuffer({ size: Math.max(size, 4), usage });
      if (size) encoder.copyBufferToBuffer(this.named.get(output.buffer), 0, read, 0, size);
      return { ...output, read };
    });
    device.queue.submit([encoder.finish()]);
    const results = [];
    for (const { name, read, type, shape, count } of reads) {
      await read.mapAsync(GPUMapMode.READ);
      const data = new ARRAYS[type](read.getMappedRange().slice(0), 0, count);
      read.destroy();
      results.push([name, { data, shape }]);
    }
    return Object.fromEntries(results);
  }
}

const ARRAYS = { f32: Float32Array, i32: Int32Array, bool: Uint32Array };

/** The device of the fastest adapter, with buffers as large as it can hold. */
async function newDevice() {
  const adapter = await globalThis.navigator?.gpu?.requestAdapter();
  if (!adapter) throw new Error("there is no WebGPU here");
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
  const requiredLimits = { maxBufferSize, maxStorageBufferBindingSize };
  return adapter.requestDevice({ requiredLimits });
}

/** So many workgroups in two dims, where one dim holds too few. */
function spread(count) {
  const down = Math.max(Math.ceil(count / 65535), 1);
  return [Math.ceil(count / down), down, 1];
}
