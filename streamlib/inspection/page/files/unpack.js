// What the page holds: one block for each inspection, and one for its bytes. Each is unpacked when
// it is chosen: a page may hold all recordings of a folder.

async function unpackJson(part) {
  const block = document.querySelector(`[data-part=${part}]`);
  return block && JSON.parse(new TextDecoder().decode(await unpack(block)));
}

const models = new Map(); // of the responses that were shown, by their number

async function modelOf(number) {
  if (!models.has(number)) {
    const inspection = await unpackJson(`inspection-${number}`);
    const body = document.querySelector(`[data-part=body-${number}]`);
    models.set(number, new Model(inspection, body && (await unpack(body))));
  }
  return models.get(number);
}
