"""`jackfield talk` with real files, a real host and a scripted Realtime model."""

from __future__ import annotations

import asyncio
import math
import wave
from array import array
from itertools import pairwise
from pathlib import Path

import pytest
from client_hosts import Deployment, command
from jackfield_client.voice.wav import AudioFile, AudioFileError
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_scripted.audio import tone
from jackfield_scripted.openai import OpenAIServer
from jackfield_testkit.command_server import start_command


def write_wav(path: Path, ms: int, *, rate: int = 24_000, channels: int = 1) -> Path:
    """Write a tone to a file."""
    samples = array("h")
    for position in range(rate * ms // 1000):
        samples.extend([round(9000 * math.sin(2 * math.pi * 440 * position / rate))] * channels)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())
    return path


def samples_of(path: Path) -> bytes:
    """Return the samples of a 24 kHz file."""
    with wave.open(str(path), "rb") as file:
        assert (file.getframerate(), file.getsampwidth(), file.getnchannels()) == (24_000, 2, 1)
        return file.readframes(file.getnframes())


def test_two_files_are_two_turns_with_tools_and_a_recording(deployment: Deployment) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("how many words")
        await model.calls(ScriptedCall("cli_look", {"text": "one two"}))
        await model.says("There are two words.")
        # The scripted model counts all audio as speech, including the silence after the first file.
        await model.hears_speech("book a table", after_ms=8000)
        await model.calls(ScriptedCall("cli_book", {"text": "a table"}))
        await model.says("It waits for you.")
        await model.hears()
        await model.says("Done.")

    async def main() -> tuple[int, str, str]:
        async with OpenAIServer(script) as server, deployment.host(server) as url:
            return await command(
                deployment.folder, "talk", "--fast", "--yes", "--wait", "30", "--out", "answer.wav",
                str(write_wav(deployment.folder / "first.wav", 400)),
                str(write_wav(deployment.folder / "second.wav", 9000, rate=16_000, channels=2)), url,
            )  # fmt: skip

    status, out, err = asyncio.run(main())
    assert status == 0, err
    assert out.splitlines() == [
        "you: how many words",
        "assistant: There are two words.",
        "you: book a table",
        "assistant: It waits for you.",
        "Book a table?",
        "assistant: Done.",
    ]
    assert "· cli_look done" in err
    assert "[speaking]" in err.splitlines()
    assert deployment.effects() == ["cli_look one two", "cli_book a table"]
    # The model speaks 60 ms for each word, and no two milliseconds are the same.
    answer = samples_of(deployment.folder / "answer.wav")
    assert answer == b"".join(tone(60 * words) for words in (4, 4, 1))


def test_transcript_and_states_in_one_pipe_are_on_separate_lines(deployment: Deployment) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("how many words")
        await model.calls(ScriptedCall("cli_look", {"text": "one two"}))
        await model.says("There are two words.")

    async def main() -> str:
        async with OpenAIServer(script) as server, deployment.host(server) as url:
            process = await start_command(
                ["talk", "--fast", "--wait", "30", str(write_wav(deployment.folder / "q.wav", 400)), url],
                cwd=deployment.folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            )  # fmt: skip
            out, _ = await asyncio.wait_for(process.communicate(), 60)
            assert process.returncode == 0, out.decode()
            return str(out, "utf-8")

    lines = asyncio.run(main()).splitlines()
    assert {"you: how many words", "assistant: There are two words.", "[speaking]"} <= set(lines)
    assert all(line.startswith("[") for line in lines if "[" in line)


def test_playback_is_reported_as_it_progresses(deployment: Deployment) -> None:
    """Of a minute's answer that is interrupted after a moment, only a part counts as played."""
    heard: list[int] = []
    answer = deployment.folder / "answer.wav"

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("tell me a story")
        await model.speaks("once upon a time there was a very long story", ms=60_000)
        # The recording grows during playback; wait for one second of it.
        while not answer.exists() or answer.stat().st_size < 48_000:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.02)
        await model.is_interrupted()
        heard.append(await model.truncated())
        await model.hears_speech("stop it", after_ms=20)
        await model.says("Good.")

    async def main() -> tuple[int, str, str]:
        async with OpenAIServer(script) as server, deployment.host(server) as url:
            return await command(
                deployment.folder, "talk", "--out", "answer.wav",
                str(write_wav(deployment.folder / "q.wav", 300)), url,
            )  # fmt: skip

    status, out, err = asyncio.run(main())
    assert status == 0, err
    assert "(interrupted)" in err
    assert "assistant: Good." in out
    assert 0 < heard[0] < 30_000
    # The recording contains what was reported as played, and the 60 ms of the last word.
    played = len(samples_of(answer)) // 48 - 60
    assert heard[0] - 1 <= played < 30_000


def test_a_file_without_an_answer_is_a_failure(deployment: Deployment) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("never long enough", after_ms=10_000_000)

    async def main() -> tuple[int, str, str]:
        async with OpenAIServer(script) as server, deployment.host(server) as url:
            return await command(
                deployment.folder, "talk", "--wait", "1.5",
                str(write_wav(deployment.folder / "q.wav", 100)), url,
            )  # fmt: skip

    status, _, err = asyncio.run(main())
    assert status == 1
    assert "q.wav: no answer for 1.5 s" in err


@pytest.mark.parametrize(
    ("rate", "channels"), [(24_000, 1), (24_000, 2), (16_000, 1), (44_100, 2), (8_000, 1)]
)
def test_files_of_any_rate_are_resampled_to_24_khz(tmp_path: Path, rate: int, channels: int) -> None:
    frames = list(AudioFile(write_wav(tmp_path / "a.wav", 1000, rate=rate, channels=channels)).frames())
    assert {len(frame) for frame in frames} == {960}
    assert len(frames) in (50, 51)
    samples = array("h", b"".join(frames)[:48_000])
    # A tone of 440 Hz crosses zero 880 times a second at any sample rate.
    crossings = sum((a < 0) != (b < 0) for a, b in pairwise(samples))
    assert 860 <= crossings <= 900
    assert 8000 <= max(samples) <= 9500


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AudioFileError, match="no such file"):
        AudioFile(tmp_path / "missing.wav")
    (tmp_path / "notes.wav").write_text("not audio")
    with pytest.raises(AudioFileError, match="not a readable audio file"):
        AudioFile(tmp_path / "notes.wav")


def test_other_rates_without_the_extra_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert list(AudioFile(write_wav(tmp_path / "plain.wav", 20)).frames())
    with pytest.raises(AudioFileError, match=r"jackfield-client\[audio\]"):
        AudioFile(write_wav(tmp_path / "other.wav", 20, rate=16_000))
