"""The syntaxes of calls that the tests of dialects run on: one `Form` for each spelling.

To test a dialect, add its forms here: every test of dialects runs on them.
"""

# ruff: noqa: RUF001  # DeepSeek writes its tokens with a full-width bar
from __future__ import annotations

from tests.support.dialect_calls import (
    ANTML,
    CODE,
    DSML,
    F1,
    KIMI,
    Form,
    K,
    M,
    function,
    invoke,
    kimi,
    long_forms,
    xai,
)

FORMS = [
    *long_forms(),
    Form("xai", ("xai",), xai("f", k="v"), F1),
    Form("xai-text-around", ("xai",), f"Look.\n{xai('f', k='v')} ok", F1, "Look.\n ok"),
    Form(
        "xai-raw-markup",
        ("xai",),
        xai("f", k="a<b && c>d <xai:x"),
        [("f", {"k": "a<b && c>d <xai:x"})],
    ),
    Form(
        "xai-closing-tag-in-value",
        ("xai",),
        xai("f", k="a</xai:parameter>b", s="x"),
        [("f", {"k": "a</xai:parameter>b", "s": "x"})],
    ),
    Form(
        "xai-call-in-value",
        ("xai",),
        xai("f", k=f"doc: {xai('g', k='1')} end"),
        [("f", {"k": f"doc: {xai('g', k='1')} end"})],
    ),
    Form(
        "xai-two", ("xai",), xai("f", n="3") + "\n" + xai("g"), [("f", {"n": 3}), ("g", {})], "\n"
    ),
    Form(
        "xai-space-between",
        ("xai",),
        '<xai:function_call name="f">\n <xai:parameter name="k">v</xai:parameter>\n'
        "</xai:function_call>",
        F1,
    ),
    Form(
        "anthropic",
        ("anthropic",),
        f"<function_calls>\n{invoke('', 'f', k='v')}\n</function_calls>",
        F1,
    ),
    Form(
        "anthropic-prefixed",
        ("anthropic",),
        f"A <{ANTML}function_calls>\n{invoke(ANTML, 'f', k='v')}\n</{ANTML}function_calls> B",
        F1,
        "A  B",
    ),
    Form(
        "anthropic-two",
        ("anthropic",),
        f"<function_calls>\n{invoke('', 'f', k='v', n='1')}\n{invoke('', 'g')}\n"
        "</function_calls>\nAfter",
        [("f", {"k": "v", "n": 1}), ("g", {})],
        "\nAfter",
    ),
    Form("anthropic-no-end", ("anthropic",), f"<function_calls>{invoke('', 'f', k='v')}", F1),
    Form(
        "anthropic-leak",
        ("anthropic",),
        f"I look.\n\ncourt\n{invoke('', 'f', k='v')}",
        F1,
        "I look.\n\n",
    ),
    Form("anthropic-leak-first", ("anthropic",), f"count\n{invoke('', 'f', k='v')}", F1),
    Form(
        "anthropic-bare",
        ("anthropic",),
        invoke("", "f", k="\nline 1\n\nline 2\n\n"),
        [("f", {"k": "line 1\n\nline 2\n"})],
    ),
    Form(
        "hermes",
        ("hermes",),
        '<tool_call>\n{"name": "f", "arguments": {"k": "v"}}\n</tool_call>',
        F1,
    ),
    Form(
        "hermes-arguments-first",
        ("hermes",),
        '<tool_call>{"arguments": {"k": "v"}, "name": "f"}</tool_call>',
        F1,
    ),
    Form(
        "hermes-double-encoded",
        ("hermes",),
        '<tool_call>{"name": "f", "arguments": "{\\"k\\": \\"v\\"}"}</tool_call>',
        F1,
    ),
    Form(
        "hermes-line-break",
        ("hermes",),
        '<tool_call>{"name": "f", "arguments": {"k": "a\nb\tc"}}</tool_call>',
        [("f", {"k": "a\nb\tc"})],
    ),
    Form(
        "hermes-closing-tag-in-value",
        ("hermes",),
        '<tool_call>{"name": "f", "arguments": {"k": "</tool_call> <tool_call>{\\"name\\": '
        '\\"g\\"}"}}</tool_call>',
        [("f", {"k": '</tool_call> <tool_call>{"name": "g"}'})],
    ),
    Form(
        "hermes-several",
        ("hermes",),
        'One <tool_call>{"name":"f","arguments":{"n":1}}</tool_call>\n\n<tool_call>'
        '{"name":"g","arguments":{}}</tool_call> done.',
        [("f", {"n": 1}), ("g", {})],
        "One \n\n done.",
    ),
    Form("hermes-no-end", ("hermes",), 'x<tool_call>{"name":"f","arguments":{"k":"v"}}', F1, "x"),
    Form("hermes-no-arguments", ("hermes",), '<tool_call>{"name":"g"}</tool_call>', [("g", {})]),
    Form(
        "hermes-one-end-for-two",
        ("hermes",),
        '<tool_call>{"name":"f","arguments":{"n":1}}\n<tool_call>{"name":"g"}</tool_call>',
        [("f", {"n": 1}), ("g", {})],
    ),
    Form(
        "hermes-openai-shape",
        ("hermes",),
        '<tool_call>{"type":"function","function":{"name":"f","arguments":{"k":"v"}}}</tool_call>',
        F1,
    ),
    Form(
        "qwen3_coder",
        ("qwen3_coder",),
        f"<tool_call>\n{function('f', k='v', n='2')}\n</tool_call>",
        [("f", {"k": "v", "n": 2})],
    ),
    Form(
        "qwen3_coder-bare",
        ("qwen3_coder",),
        f"So:\n{function('f', k='v')}\n</tool_call>",
        F1,
        "So:\n",
    ),
    Form(
        "qwen3_coder-value-not-closed",
        ("qwen3_coder",),
        "<tool_call>\n<function=f>\n<parameter=k>\nv\n<parameter=n>\n3\n</parameter>\n"
        "</function>\n</tool_call>",
        [("f", {"k": "v\n"[:1], "n": 3})],
    ),
    Form(
        "qwen3_coder-no-bracket",
        ("qwen3_coder",),
        "<tool_call>\n<function=f\n<parameter=k>\nv\n</parameter>\n</function>\n</tool_call>",
        F1,
    ),
    Form(
        "qwen3_coder-lines",
        ("qwen3_coder",),
        f"<tool_call>\n{function('f', s=CODE)}\n</tool_call>",
        [("f", {"s": CODE})],
    ),
    Form(
        "qwen3_coder-and-hermes",
        ("hermes", "qwen3_coder"),
        f"<tool_call>\n{function('f', k='v')}\n</tool_call>",
        F1,
    ),
    Form(
        "seed_oss",
        ("seed_oss",),
        f"<seed:tool_call>\n{function('f', k='v')}\n</seed:tool_call>",
        F1,
    ),
    Form(
        "mimo",
        ("mimo",),
        "<tool_call><function=f><parameter=k>a &lt;b&gt;</parameter></function></tool_call>",
        [("f", {"k": "a <b>"})],
    ),
    Form(
        "glm45",
        ("glm45",),
        "<tool_call>f\n<arg_key>k</arg_key>\n<arg_value>1</arg_value>\n<arg_key>n</arg_key>\n"
        "<arg_value>1</arg_value>\n</tool_call>",
        [("f", {"k": "1", "n": 1})],
    ),
    Form(
        "glm47",
        ("glm47",),
        "<tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>x<tool_call>"
        "g</tool_call>",
        [*F1, ("g", {})],
        "x",
    ),
    Form(
        "glm47-untyped",
        ("glm47",),
        "<tool_call>g<arg_key>q</arg_key><arg_value>[1, 2]</arg_value></tool_call>",
        [("g", {"q": [1, 2]})],
    ),
    Form(
        "glm-with-hermes",
        ("hermes", "glm45"),
        "<tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>",
        F1,
    ),
    Form(
        "hy_v3",
        ("hy_v3",),
        "A <tool_calls>\n<tool_call>f<tool_sep>\n<arg_key>k</arg_key>\n<arg_value>v</arg_value>\n"
        "</tool_call>\n<tool_call>g<tool_sep>\n</tool_call>\n</tool_calls>",
        [*F1, ("g", {})],
        "A ",
    ),
    Form(
        "hy_v3-suffix",
        ("hunyuan_a13b", "hy_v3"),
        "<tool_calls:opensource><tool_call:opensource>f<tool_sep:opensource><arg_key:opensource>k"
        "</arg_key:opensource><arg_value:opensource>v</arg_value:opensource>"
        "</tool_call:opensource></tool_calls:opensource>",
        F1,
    ),
    Form(
        "iquest_q1",
        ("iquest_q1",),
        "<iquest_tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></iquest_tool_call>",
        F1,
    ),
    Form(
        "ernie45",
        ("ernie45",),
        '<tool_call>\n{"name": "f", "arguments": {"k": "v"}}\n</tool_call>',
        F1,
    ),
    Form("kimi_k2", ("kimi_k2",), f"Hi {KIMI[0]}{kimi('functions.f:0', K)}{KIMI[1]}", F1, "Hi "),
    Form(
        "kimi_k2-several",
        ("kimi_k2",),
        f"{KIMI[0]}{kimi('functions.f:0 ', '{}')}{kimi('functions.g:1', '{}')}{KIMI[1]}",
        [("f", {}), ("g", {})],
    ),
    Form("kimi_k2-no-section", ("kimi_k2",), f"a{kimi('functions.f:0', '{}')}b", [("f", {})], "ab"),
    Form(
        "kimi_k2-short-id",
        ("kimi_k2",),
        f"<|tool_call_section_begin|>{kimi('f:0', '{}')}<|tool_call_section_end|>",
        [("f", {})],
    ),
    Form(
        "kimi_k2-ends-bundled",
        ("kimi_k2",),
        f"{KIMI[0]}{kimi('functions.f:0', '{}', '')}{kimi('functions.g:1', '{}')}{KIMI[1]}",
        [("f", {}), ("g", {})],
    ),
    Form(
        "kimi_k2-html",
        ("kimi_k2",),
        KIMI[0] + kimi("functions.f:0", '{"k": "<p>|</p>"}') + KIMI[1],
        [("f", {"k": "<p>|</p>"})],
    ),
    Form(
        "kimi_k3",
        ("kimi_k3",),
        "<|open|>response<|sep|>Hi<|close|>response<|sep|><|open|>tools<|sep|><|open|>call "
        'tool="f" index="1"<|sep|>'
        '<|open|>argument key="k" type="string"<|sep|>a &lt; <b><|close|>argument<|sep|>'
        '<|open|>argument key="n" type="integer"<|sep|>7'
        "<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        [("f", {"k": "a &lt; <b>", "n": 7})],
        "Hi",
    ),
    Form(
        "kimi_k3-json",
        ("kimi_k3",),
        '<|open|>tools<|sep|><|open|>call tool="ns.tool-1" index="1"<|sep|><|open|>json<|sep|>'
        '{"k": "v"}<|close|>json<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|>",
        [("ns.tool-1", {"k": "v"})],
    ),
    Form(
        "deepseek_v3",
        ("deepseek_v3",),
        'So<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"k":"v"}\n'
        "```<｜tool▁call▁end｜>\n"
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>",
        [*F1, ("g", {})],
        "So",
    ),
    Form(
        "deepseek_v31",
        ("deepseek_v31",),
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"k":"v"}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>",
        F1,
    ),
    Form(
        "deepseek_v31-ascii",
        ("deepseek_v31",),
        '<|tool_calls_begin|><|tool_call_begin|>f<|tool_sep|>{"k":"v"}<|tool_call_end|>'
        "<|tool_calls_end|>",
        F1,
    ),
    Form(
        "deepseek_v32",
        ("deepseek_v32",),
        f'<{DSML}function_calls>\n<{DSML}invoke name="f">\n<{DSML}parameter name="k" '
        f'string="true">1</{DSML}parameter>\n'
        f'<{DSML}parameter name="n" string="false">1</{DSML}parameter>\n</{DSML}invoke>\n'
        f"</{DSML}function_calls>",
        [("f", {"k": "1", "n": 1})],
    ),
    Form(
        "deepseek_v32-json",
        ("deepseek_v32",),
        f'<{DSML}tool_calls><{DSML}invoke name="f">{{"k":"v"}}</{DSML}invoke></{DSML}tool_calls>',
        F1,
    ),
    Form(
        "deepseek_v32-empty",
        ("deepseek_v32",),
        f'<{DSML}function_calls><{DSML}invoke name="g"/></{DSML}function_calls>',
        [("g", {})],
    ),
    Form(
        "deepseek_v41",
        ("deepseek_v32",),
        f'<{DSML} calls><{DSML} invoke name="f"><{DSML} parameter name="k" string="true">v'
        f"</{DSML} parameter></{DSML} invoke></{DSML} calls>",
        F1,
    ),
    Form(
        "deepseek_v32-ascii",
        ("deepseek_v32",),
        '<|DSML|invoke name="f"><|DSML|parameter name="k">v</|DSML|parameter></|DSML|invoke>',
        F1,
    ),
    Form(
        "minimax_m2",
        ("minimax_m2",),
        f"Hm <minimax:tool_call>\n{invoke('', 'f', k='v')}\n{invoke('', 'g')}\n"
        "</minimax:tool_call>",
        [*F1, ("g", {})],
        "Hm ",
    ),
    Form(
        "minimax_m2-quotes",
        ("minimax_m2",),
        "<minimax:tool_call><invoke name='f'><parameter name=k>v</parameter></invoke>"
        "</minimax:tool_call>",
        F1,
    ),
    Form(
        "minimax_m3",
        ("minimax_m3",),
        f'{M}<tool_call>\n{M}<invoke name="f">{M}<n>1{M}</n>{M}<o>{M}<p>q{M}</p>{M}</o>{M}<a>'
        f"{M}<item>1{M}</item>{M}<item>2{M}</item>"
        f"{M}</a>{M}</invoke>\n{M}</tool_call>",
        [("f", {"n": 1, "o": {"p": "q"}, "a": ["1", "2"]})],
    ),
    Form(
        "llama3_json",
        ("llama3_json",),
        '<|python_tag|>{"name": "f", "parameters": {"k": "v"}}; {"name": "g", "parameters": {}}',
        [*F1, ("g", {})],
    ),
    Form(
        "llama3_json-bare",
        ("llama3_json",),
        '{"type": "function", "name": "f", "parameters": {"k": "v"}}',
        F1,
    ),
    Form(
        "pythonic",
        ("pythonic",),
        '[f(k="v", n=-1, b=True, x=1.5, a=[1, "2"], o={"p": None}), g()]',
        [
            ("f", {"k": "v", "n": -1, "b": True, "x": 1.5, "a": [1, "2"], "o": {"p": None}}),
            ("g", {}),
        ],
    ),
    Form(
        "pythonic-llama4",
        ("pythonic",),
        "Hi <|python_start|>[f(k='it\\'s')]<|python_end|> end",
        [("f", {"k": "it's"})],
        "Hi  end",
    ),
    Form("pythonic-lfm2", ("pythonic",), '<|tool_call_start|>[f(k="v")]<|tool_call_end|>', F1),
    Form(
        "pythonic-lfm2-json",  # A23
        ("pythonic",),
        '<|tool_call_start|>[{"name": "f", "arguments": {"k": "v"}}]<|tool_call_end|>',
        F1,
    ),
    Form(
        "nemotron",
        ("nemotron",),
        '<TOOLCALL>[{"name": "f", "arguments": {"k": "v"}}]</TOOLCALL>',
        F1,
    ),
    Form(
        "pythonic-olmo3",
        ("pythonic",),
        '<function_calls>\nf(k="v")\ng()\n</function_calls>',
        [*F1, ("g", {})],
    ),
    Form(
        "mistral-array",
        ("mistral",),
        '[TOOL_CALLS] [{"name":"f","arguments":{"k":"v"},"id":"abcdefghi"},{"name":"g",'
        '"arguments":{}}] and',
        [*F1, ("g", {})],
        " and",
    ),
    Form(
        "mistral-args",
        ("mistral",),
        '[TOOL_CALLS]f[ARGS]{"k":"v"}[TOOL_CALLS]g[ARGS]{}',
        [*F1, ("g", {})],
    ),
    Form(
        "mistral-token-twice",
        ("mistral",),
        '[TOOL_CALLS] [TOOL_CALLS] [{"name":"f","arguments":{"k":"v"}}]',
        F1,
    ),
    Form("mistral-spaces", ("mistral",), '[TOOL_CALLS]f [ARGS] {"k":"v"}', F1),
    Form(
        "kimi_k2-no-arguments",
        ("kimi_k2",),
        f"{KIMI[0]}{kimi('functions.g:0', '')}{KIMI[1]}",
        [("g", {})],
    ),
    Form(
        "llama3_json-function",
        ("llama3_json",),
        'So: <function=f>{"k": "v"}</function>',
        F1,
        "So: ",
    ),
    Form(
        "deepseek_v32-wrapped",
        ("deepseek_v32",),
        f'<{DSML}invoke name="f"><{DSML}parameter name="arguments" string="false">{{"k": "v"}}'
        f"</{DSML}parameter></{DSML}invoke>",
        F1,
    ),
    Form(
        "deepseek_v32-wrapped-string",
        ("deepseek_v32",),
        f'<{DSML}invoke name="f"><{DSML}parameter name="input" string="true">{{"k": "v"}}'
        f"</{DSML}parameter></{DSML}invoke>",
        F1,
    ),
    Form(
        "deepseek_v32-schema-types",
        ("deepseek_v32",),
        f'<{DSML}invoke name="f"><{DSML}parameter name="n" string="true">42</{DSML}parameter>'
        f'<{DSML}parameter name="k" string="false">5</{DSML}parameter></{DSML}invoke>',
        [("f", {"n": 42, "k": "5"})],
    ),
    Form("mistral-id", ("mistral",), '[TOOL_CALLS]f[CALL_ID]abc123def[ARGS]{"k":"v"}', F1),
    Form("mistral-devstral", ("mistral",), '[TOOL_CALLS]f{"k":"v"}', F1),
    Form(
        "harmony",
        ("harmony",),
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
        "to=functions.f <|constrain|>json<|message|>"
        '{"k":"v"}<|call|>',
        F1,
        "",
        "Hm.",
    ),
    Form(
        "harmony-recipient-first",
        ("harmony",),
        '<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"k":"v"}<|call|>',
        F1,
    ),
    Form(
        "harmony-final",
        ("harmony",),
        "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>"
        "final<|message|>Paris.<|return|>",
        [],
        "I look.Paris.",
    ),
    Form("harmony-leak", ("harmony",), 'ok to=functions.f  json {"k":"v"}', F1, "ok "),
    Form(
        "harmony-parallel",
        ("harmony",),
        'to=multi_tool_use.parallel {"tool_uses":[{"recipient_name":"functions.f",'
        '"parameters":{"k":"v"}}]}',
        F1,
    ),
    Form("granite", ("granite",), '<|tool_call|>[{"name":"f","arguments":{"k":"v"}}]', F1),
    Form(
        "phi4_mini_json", ("phi4_mini_json",), 'functools[{"name":"f","arguments":{"k":"v"}}]', F1
    ),
    Form(
        "internlm",
        ("internlm",),
        'a<|action_start|><|plugin|>{"name":"f","parameters":{"k":"v"}}<|action_end|>',
        F1,
        "a",
    ),
    Form(
        "hunyuan_a13b",
        ("hunyuan_a13b",),
        '<tool_calls>[{"name":"f","arguments":{"k":"v"}}]</tool_calls>',
        F1,
    ),
    Form(
        "hunyuan-lines",
        ("hunyuan_a13b",),
        '<tool_calls>\n{"name":"f","arguments":{"k":"v"}}\n{"name":"g"}\n</tool_calls>',
        [*F1, ("g", {})],
    ),
    Form(
        "hunyuan-answer",
        ("hunyuan_a13b",),
        '<answer>\nSo.<tool_calls>[{"name":"f","arguments":{"k":"v"}}]</tool_calls>\n</answer>',
        F1,
        "So.",
    ),
    Form("jamba", ("jamba",), '<tool_calls>[{"name":"f","arguments":{"k":"v"}}]</tool_calls>', F1),
    Form(
        "apriel",
        ("apriel",),
        '<tool_calls>[{"name":"f","arguments":{"k":"v"},"id":"1"}]</tool_calls>',
        F1,
    ),
    Form(
        "hermes-wrapped-arguments",
        ("hermes",),
        '<tool_call>{"name":"f","arguments":{"input":{"k":"v"}}}</tool_call>',
        F1,
    ),
    Form(
        "longcat",
        ("longcat",),
        '<longcat_tool_call>{"name":"f","arguments":{"k":"v"}}</longcat_tool_call>',
        F1,
    ),
    Form(
        "cohere",
        ("cohere",),
        '<|START_ACTION|>[{"tool_call_id":"0","tool_name":"f","parameters":{"k":"v"}}]'
        "<|END_ACTION|>",
        F1,
    ),
    Form(
        "cohere-action",
        ("cohere",),
        'Plan.\nAction: ```json\n[{"tool_name": "f", "parameters": {"k": "v"}},\n'
        '{"tool_name": "g", "parameters": {}}]\n```',
        [*F1, ("g", {})],
        "Plan.\n",
    ),
    Form(
        "dots-json",
        ("dots",),
        '<dots_function_call>\n{"name":"f","arguments":{"k":"v"}}\n</dots_function_call>',
        F1,
    ),
    Form(
        "dots",
        ("dots",),
        '<dots_function_call>\n<invoke name="f">\n<parameter name="k">v</parameter>\n</invoke>\n'
        '<invoke name="g">\n</invoke>\n</dots_function_call>',
        [*F1, ("g", {})],
    ),
    Form(
        "step3",
        ("step3",),
        "<｜tool_calls_begin｜>"
        '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="f"><steptml:parameter '
        'name="k">v</steptml:parameter>'
        "</steptml:invoke>"
        '<｜tool_call_end｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="g">'
        "</steptml:invoke><｜tool_call_end｜>"
        "<｜tool_calls_end｜>",
        [*F1, ("g", {})],
    ),
    Form(
        "step3-bare",
        ("step3",),
        '<steptml:invoke name="f"><steptml:parameter name="k">v</steptml:parameter>'
        "</steptml:invoke>",
        F1,
    ),
    Form("minicpm5", ("minicpm5",), '<function name="f"><param name="k">v</param></function>', F1),
    Form(
        "minicpm5-character-data",
        ("minicpm5",),
        '<function name="f"><param name="k"><![CDATA[a</param>b]]></param></function>',
        [("f", {"k": "a</param>b"})],
    ),
    Form(
        "gigachat35",
        ("gigachat35",),
        'A <｜GCML｜tool_calls>\n<｜GCML｜invoke name="f">\n'
        '<｜GCML｜parameter name="k" string="true">v</｜GCML｜parameter>\n'
        '<｜GCML｜parameter name="n" string="false">1</｜GCML｜parameter>\n'
        "</｜GCML｜invoke>\n</｜GCML｜tool_calls>",
        [("f", {"k": "v", "n": 1})],
        "A ",
    ),
    Form("gigachat3", ("gigachat3",), '<|function_call|>{"name":"f","arguments":{"k":"v"}}', F1),
    Form(
        "gigachat3-old",
        ("gigachat3",),
        'function call<|role_sep|>\n{"name": "f", "arguments": {"k": "v"}}',
        F1,
    ),
    Form(
        "apertus",
        ("apertus",),
        '<|tools_prefix|>[{"f": {"k": "v"}}, {"g": {}}]<|tools_suffix|> ok',
        [*F1, ("g", {})],
        " ok",
    ),
    Form("apertus-no-end", ("apertus",), '<|tools_prefix|>[{"f":{"k":"v"}}]', F1),
    Form(
        "gemma4",
        ("gemma4",),
        'Let me. <|tool_call>call:f{k:<|"|>v<|"|>}<tool_call|>',
        F1,
        "Let me. ",
    ),
    Form(
        "gemma4-values",
        ("gemma4",),
        '<|tool_call>call:f{ k:<|"|>a "b", {c}:\n<d<|"|>,n:-1, x:1.5 ,b:true,a:[1,<|"|>s<|"|>,'
        '[]],o:{y:null,<|"|>z<|"|>:{}}}<tool_call|>',
        [
            (
                "f",
                {
                    "k": 'a "b", {c}:\n<d',
                    "n": -1,
                    "x": 1.5,
                    "b": True,
                    "a": [1, "s", []],
                    "o": {"y": None, "z": {}},
                },
            )
        ],
    ),
    Form(
        "gemma4-without-quotes",
        ("gemma4",),
        "<|tool_call>call:f{k:New York,n:3,a:[x y,1]}<tool_call|>",
        [("f", {"k": "New York", "n": 3, "a": ["x y", 1]})],
    ),
    Form("gemma4-parentheses", ("gemma4",), "<|tool_call>:f(k:v)<tool_call|>", F1),
    Form(
        "gemma4-ended-twice",
        ("gemma4",),
        '<|tool_call>call:f{k:<|"|>v<|"|>}<tool_call|><tool_call|><|tool_response>',
        F1,
    ),
    Form("gemma4-json", ("gemma4",), '<|tool_call>call:f{"k":"v"}<tool_call|>', F1),
    Form(
        "gemma4-two-no-end",
        ("gemma4",),
        '<|tool_call>call:f{k:<|"|>v<|"|>}<|tool_call>call:g{}',
        [*F1, ("g", {})],
    ),
    Form(
        "functiongemma",
        ("functiongemma",),
        "<start_function_call>call:f{k:<escape>v<escape>}<end_function_call>",
        F1,
    ),
]
"""Each dialect in each of its known spellings."""
