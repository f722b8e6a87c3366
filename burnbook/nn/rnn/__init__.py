"""Recurrent layers."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.nn.rnn.bi_lstm import BiLstm, BiLstmConfig
from burnbook.nn.rnn.gate_controller import GateController
from burnbook.nn.rnn.gru import BiGru, BiGruConfig, Gru, GruConfig
from burnbook.nn.rnn.lstm import Lstm, LstmConfig, LstmState
from burnbook.nn.rnn.rnn import BiRnn, BiRnnConfig, Rnn, RnnConfig, RnnState

__all__ = [
    "BiGru",
    "BiGruConfig",
    "BiLstm",
    "BiLstmConfig",
    "BiRnn",
    "BiRnnConfig",
    "GateController",
    "Gru",
    "GruConfig",
    "Lstm",
    "LstmConfig",
    "LstmState",
    "Rnn",
    "RnnConfig",
    "RnnState",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
