"""Gemini on Vertex AI: https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest.

Project and location come from the environment, or are in `base_url`. The key is an OAuth access
token, which is valid for an hour: pass a function (`api_key=`) that fetches one, or put the output
of `gcloud auth print-access-token` into a variable. Claude is `vertex-anthropic`.
"""

from __future__ import annotations

from streamlib.providers import Provider

DEVELOPER_API_ONLY = "only the Developer API accepts it"
URL_VARIABLES = {
    "project": ("GOOGLE_CLOUD_PROJECT",),
    "location": ("GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION"),
}
URL_REPLACEMENTS = {
    "//global-aiplatform.googleapis.com": "//aiplatform.googleapis.com",
    "//us-aiplatform.googleapis.com": "//aiplatform.us.rep.googleapis.com",
    "//eu-aiplatform.googleapis.com": "//aiplatform.eu.rep.googleapis.com",
}
"""Locations that are not a region have hosts of their own."""
TOKENS = ("GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN")

PROVIDER = Provider(
    name="vertex",
    parses_calls=True,
    aliases=("google-vertex", "vertex-ai"),
    wires=("gemini", "interactions"),
    # Keys of the environment are sent to these addresses: the global host, and every region's.
    base_url="https://aiplatform.googleapis.com",
    wire_urls={
        "gemini": (
            "https://{location}-aiplatform.googleapis.com/v1beta1"
            "/projects/{project}/locations/{location}/publishers/google"
        ),
        "interactions": (
            "https://{location}-aiplatform.googleapis.com/v1beta1"
            "/projects/{project}/locations/{location}"
        ),
    },
    key_env=TOKENS,
    url_variables=URL_VARIABLES,
    url_replacements=URL_REPLACEMENTS,
    models_path="",  # models are listed by project and region
    unsupported={"toolConfig.includeServerSideToolInvocations": DEVELOPER_API_ONLY},
)
