// The script that stands in the page as it is. What was inspected, and the other scripts, lie in
// the page as deflated base64; its policy names the digests of the scripts, so nothing else runs.

async function unpack(element) {
  const packed = bytesOf(element.textContent);
  const inflated = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const signs = atob(base64); // browsers of before 2025
  const bytes = new Uint8Array(signs.length);
  for (let index = 0; index < signs.length; index++) bytes[index] = signs.charCodeAt(index);
  return bytes;
}

function fail(error) {
  document.getElementById("state").textContent = `This page cannot be shown: ${error}`;
}

unpack(document.querySelector("[data-part=script]"))
  .then(bytes => {
    const script = document.createElement("script");
    script.textContent = new TextDecoder().decode(bytes);
    document.head.append(script);
  })
  .catch(fail);
