"""The four tools that AI Edge Gallery always declares for Agent Skills, in its order.

Interface text: it must match the app to the byte, since the model reads it on the phone. Source:
google-ai-edge/gallery at commit 2cb35a2e (app 1.0.18), Apache-2.0; see NOTICE.
"""

from __future__ import annotations

from hermes.record import Tool

NO_SKILL_ANSWER = "No relevant skills found"
"""What the app's prompt asks for where no skill fits."""


def _strings(**descriptions: str) -> dict[str, object]:
    properties = {name: {"type": "string", "description": text} for name, text in descriptions.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}


GALLERY_TOOLS: tuple[Tool, ...] = (
    Tool("load_skill", "Loads a skill.", _strings(skill_name="The name of the skill to load.")),
    Tool(
        "run_mcp_tool",
        "Run a MCP tool",
        _strings(
            tool_name="The name of the tool to run.",
            input="The parameters passed to tool as input",
        ),
    ),
    Tool(
        "run_js",
        "Runs JS script",
        _strings(
            skill_name="The name of skill",
            script_name="The script name to run. Use 'index.html' if not provided by user",
            data="The data to pass to the script. Use empty string if not provided by user",
        ),
    ),
    Tool(
        "run_intent",
        "Run an Android intent. It is used to interact with the app to perform certain actions.",
        _strings(
            intent="The intent to run.",
            parameters="A JSON string containing the parameter values required for the intent.",
        ),
    ),
)
