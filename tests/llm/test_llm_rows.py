import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from davinci_kernel.errors import UserError
from davinci_kernel.llm import Row, read_rows, write_rows

CALL = {"type": "function", "function": {"name": "f", "arguments": {"names": ["a", "b"], "n": 1}}}


def test_round_trip_keeps_nested_calls(tmp_path):
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "", "tool_calls": [CALL]}]
    rows = [Row(messages, tools=[{"type": "function", "function": {"name": "f"}}], kind="selection")]
    write_rows(rows, tmp_path / "deep" / "rows.parquet")
    assert read_rows(tmp_path / "deep" / "rows.parquet") == rows


def test_published_layout_with_nested_columns(tmp_path):
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "there"}]
    pq.write_table(pa.table({"messages": [messages], "enable_thinking": [True]}), tmp_path / "p.parquet")
    assert read_rows(tmp_path / "p.parquet") == [Row(messages, enable_thinking=True)]


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such file"), (b"hello", "not a parquet file"), ("columns", "no column `messages`; it has other")],
)
def test_unusable_files_are_named(tmp_path, content, message):
    path = tmp_path / "rows.parquet"
    if content == "columns":
        pq.write_table(pa.table({"other": [1]}), path)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        read_rows(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
