"""What other releases of Burn wrote is read."""

import struct

import msgpack
import pytest

from burnbook.module.param import ParamId, ParamRecord
from burnbook.record import HalfPrecisionSettings, NamedMpkBytesRecorder, RecordError
from burnbook.tensor.data import TensorData
from tests.support.cases import cases

WEIGHT = ParamId(1).serialize()


def packed(item, version="0.13.0", **metadata):
    head = {
        "float": "half::binary16::f16",
        "int": "i16",
        "format": "x",
        "version": version,
        "settings": "HalfPrecisionSettings",
    } | metadata
    return msgpack.packb({"metadata": head, "item": item, "_b": []})


UUID = "01234567-89ab-cdef-0123-456789abcdef"


def test_burn_0_13_wrote_half_precision_as_bit_patterns():
    bits = [15360, 48128, 0, 14336]
    data = packed({"w": {"id": UUID, "param": {"value": bits, "shape": [2, 2]}}})
    recorder = NamedMpkBytesRecorder(HalfPrecisionSettings)
    found = recorder.load(data)["w"]
    assert found == ParamRecord(UUID, TensorData([[1, -1], [0, 0.5]], dtype="f16"))
    assert recorder.write(recorder.read(data)) == data


def test_burn_0_13_wrote_full_precision_as_single_floats():
    packer = msgpack.Packer(use_single_float=True)
    tree = packed({"w": {"value": "HERE", "shape": [3]}}, float="f32", int="i32")
    data = tree.replace(msgpack.packb("HERE"), packer.pack([0.5, 1 / 3, -2.0]))
    recorder = NamedMpkBytesRecorder()
    found = recorder.read(data)
    assert found.item["w"] == TensorData([0.5, 1 / 3, -2.0])
    assert recorder.write(found) == data


def test_burn_0_13_ints_and_bools_keep_their_kind():
    ints = {"value": [-1, 70000], "shape": [2]}
    flags = {"value": [True, False], "shape": [2]}
    item = NamedMpkBytesRecorder().load(packed([ints, flags], float="f32"))
    assert item == [TensorData([-1, 70000], dtype="i32"), TensorData([True, False])]


def test_an_old_uuid_means_the_same_parameter_everywhere():
    assert ParamId.deserialize(UUID) == ParamId.deserialize(UUID.upper())


def test_structs_written_by_position_are_read():
    tensor = [struct.pack("<2f", 1, 2), [2], "F32"]
    head = ["f32", "i32", "x", "0.15.0", "FullPrecisionSettings"]
    data = msgpack.packb([head, {"w": [WEIGHT, tensor], "t": tensor}, []])
    found = NamedMpkBytesRecorder().load(data)
    plain = TensorData([1.0, 2.0])
    assert found == {"w": ParamRecord(WEIGHT, plain), "t": plain}


@cases(
    "dtype raw",
    ({"Bool": "Native"}, b"\1\0"),
    ({"Bool": "U8"}, b"\1\0"),
    ({"Bool": "U32"}, b"\1\0\0\0\0\0\0\0"),
    ("Bool", b"\1\0"),
)
def test_bools_of_every_release_are_read(dtype, raw):
    data = packed({"bytes": raw, "shape": [2], "dtype": dtype}, "0.21.0")
    assert NamedMpkBytesRecorder().load(data) == TensorData([True, False])


@pytest.mark.parametrize(
    ("dtype", "raw"), [("Flex32", struct.pack("<f", 1.5)), ("BF16", b"\xc0\x3f")]
)
def test_rare_float_types_are_read(dtype, raw):
    data = packed({"bytes": raw, "shape": [1], "dtype": dtype}, "0.17.0")
    assert NamedMpkBytesRecorder().load(data) == TensorData([1.5])


def test_keys_in_another_order_and_unknown_keys_at_the_top_do_no_harm():
    plain = msgpack.unpackb(NamedMpkBytesRecorder().record({"a": 1}))
    data = msgpack.packb(
        {"extra": 1, "item": plain["item"], "metadata": plain["metadata"]}
    )
    assert NamedMpkBytesRecorder().load(data) == {"a": 1}


def test_another_release_can_be_named_and_the_unreadable_ones_cannot():
    recorder = NamedMpkBytesRecorder(version="0.16.1")
    assert recorder.read(recorder.record(None)).metadata.version == "0.16.1"
    for version in ("0.13.0", "0.22.0", "0.x", "", "1"):
        with pytest.raises(RecordError, match="cannot be written"):
            NamedMpkBytesRecorder(version=version)
