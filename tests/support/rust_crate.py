"""One crate with several models, which predicts with each of them."""

from burnbook.exporters.rust.project import RustModel, imports, numbers_text, predictor
from tests.support.cargo import RUST


def several_sources(models: list[tuple[str, RustModel]]) -> dict[str, str]:
    """The sources of the crate by their paths.

    Its program is given a folder with NAME.mpk (or .bpk) and NAME.json for each model;
    for each it prints a line of JSON, {"name": …, "outputs": […]}.
    """
    texts = {f"src/{name}.rs": made.source for name, made in models}
    rows = [
        f'        ("{name}", "{made.file.partition(".")[2]}", predict_{name}),'
        for name, made in models
    ]
    lines = ["#![allow(dead_code)]", *[f"mod {name};" for name, _ in models], ""]
    lines += [*imports(models[0][1].dialect), numbers_text(models[0][1].dialect)]
    for name, made in models:
        lines += [*predictor(made, f"predict_{name}", name), ""]
    lines += ["fn all() -> Vec<(&'static str, &'static str, Predict)> {", "    vec!["]
    lines += [*rows, "    ]", "}", ""]
    lines.append((RUST / "several_models.rs").read_text(encoding="utf-8"))
    texts["src/main.rs"] = "\n".join(lines)
    return texts
