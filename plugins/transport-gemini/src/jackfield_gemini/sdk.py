"""Google's SDK, made ready away from the event loop, where what takes long would silence other sessions."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    # A text in its sources holds an escape that Python warns of whenever it has to compile them.
    for kind in (DeprecationWarning, SyntaxWarning):
        warnings.simplefilter("ignore", kind)
    from google.genai import types


def build_models() -> None:
    """Have the SDK's larger models built now, and not when the first session needs them."""
    for model in (
        types.LiveConnectConfig,
        types.LiveConnectParameters,
        types.LiveServerMessage,
        types.LiveClientContent,
        types.LiveClientToolResponse,
        types.GenerateContentConfig,
        types.GenerateContentResponse,
    ):
        model.model_rebuild()
