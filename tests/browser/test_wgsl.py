"""The driver of WebGPU in a headless Chromium, on the adapter of the CPU."""

import functools
import http.server
import threading
from pathlib import Path

import numpy as np
import pytest

from burnbook.exporters import to_javascript, to_wgsl
from tests.browser.conftest import CHROMIUM
from tests.support.written_models import MODELS

pytestmark = pytest.mark.browser
FLAGS = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--no-sandbox"]
SCRIPT = """
async ([file, key, kind, values, each]) => {
  const { Model } = await import(file);
  const model = await Model.load();
  const all = globalThis[kind].from(values);
  const found = [];
  for (const x of [all, all.slice(0, each)]) {
    const results = await model.forward({ [key]: x });
    const { data, shape } = Object.values(results)[0];
    found.push([Array.from(data), shape]);
  }
  return found;
}
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that writes no log."""

    def log_message(self, *given):
        """Nothing."""


@pytest.fixture(scope="module")
def page(tools, tmp_path_factory):
    """A page of a folder, in a browser with WebGPU; and the folder."""
    if not Path(CHROMIUM).exists():
        pytest.skip("no chromium on this machine")
    folder = tmp_path_factory.mktemp("page")
    (folder / "index.html").write_text("<title>A model</title>")
    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = tools.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
    yield page, folder
    browser.close()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("write", [to_wgsl, to_javascript])
@pytest.mark.parametrize("name", MODELS)
def test_a_page_predicts_as_the_network_does_here(write, name, page):
    page, folder = page
    has_gpu = "navigator.gpu?.requestAdapter().then(found => found !== null)"
    if write is to_wgsl and not page.evaluate(has_gpu):
        pytest.skip("this Chromium has no WebGPU")
    make, inputs = MODELS[name]
    model, x = make().valid(), inputs(3)
    file = f"{name}_{write.__name__}.js"
    made = write(model, folder / file, x, weights="beside")
    array = np.asarray(x)
    kind = "Float32Array" if array.dtype.kind == "f" else "Int32Array"
    asked = [f"./{file}", made.inputs[0], kind, array.ravel().tolist()]
    found = page.evaluate(SCRIPT, [*asked, array[0].size])
    for (data, shape), given in zip(found, (x, x[:1]), strict=True):
        wanted = np.asarray(model.forward(given))
        assert tuple(shape) == wanted.shape
        np.testing.assert_allclose(np.reshape(data, shape), wanted, 1e-5, 1e-5)
