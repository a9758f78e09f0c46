"""Gemini on Vertex AI: https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest.

Project and location come from the environment, or stand in `base_url`. The key is an OAuth access token, which lives an hour: give a
function (`api_key=`) that fetches one, or keep what `gcloud auth print-access-token` says in a variable. Claude is `vertex-anthropic`.
"""

from __future__ import annotations

from streamlib.providers import Provider

DEVELOPER_API_ONLY = "only the Developer API takes it"
PLACES = {
    "project": ("GOOGLE_CLOUD_PROJECT",),
    "location": ("GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION"),
}
HOSTS = {
    "//global-aiplatform.googleapis.com": "//aiplatform.googleapis.com",
    "//us-aiplatform.googleapis.com": "//aiplatform.us.rep.googleapis.com",
    "//eu-aiplatform.googleapis.com": "//aiplatform.eu.rep.googleapis.com",
}
"""Locations that are no region have hosts of their own."""
TOKENS = ("GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN")

PROVIDER = Provider(
    name="vertex",
    parses_calls=True,
    aliases=("google-vertex", "vertex-ai"),
    wires=("gemini",),
    # Keys of the environment go to the addresses that stand here: the global host, and every region's.
    base_url="https://aiplatform.googleapis.com",
    wire_urls={
        "gemini": "https://{location}-aiplatform.googleapis.com/v1beta1/projects/{project}/locations/{location}/publishers/google"
    },
    key_env=TOKENS,
    url_variables=PLACES,
    url_replacements=HOSTS,
    models_path="",  # its list is of projects and regions
    unsupported={"toolConfig.includeServerSideToolInvocations": DEVELOPER_API_ONLY},
)
