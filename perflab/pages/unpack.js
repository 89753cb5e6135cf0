// What is packed in this page: the size in bytes, and DEFLATE (RFC 1951), in base64 (draw_html.packed). It is unpacked
// at once, as paper does not wait: that is why the browser's own DecompressionStream does not do.
(() => {
  "use strict";
  const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
  // Of lengths and distances: the first of each code, and how many more bits say which.
  const table = (first, extra) => extra.map((bits) => [(first += 1 << bits) - (1 << bits), bits]);
  const LENGTHS = [...table(3, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5]), [258, 0]];
  const DISTANCES = table(1, [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13]);

  function inflate(data, out) {
    let at = 0, held = 0, count = 0, size = 0;
    function bits(n) {
      for (; count < n; count += 8) held |= data[at++] << count;
      const value = held & ((1 << n) - 1);
      held >>>= n;
      count -= n;
      return value;
    }
    // Canonical codes: how many there are of each length, and what they stand for in their order.
    function codes(lengths) {
      const counts = new Array(16).fill(0), symbols = [];
      for (const length of lengths) if (length > 0) counts[length] += 1;
      for (let n = 1; n < 16; n++) lengths.forEach((length, symbol) => length === n && symbols.push(symbol));
      return { counts, symbols };
    }
    function next({ counts, symbols }) {
      let code = 0, first = 0, place = 0;
      for (let n = 1; n < 16; n++) {
        code |= bits(1);
        if (code - first < counts[n]) return symbols[place + code - first];
        place += counts[n];
        first = (first + counts[n]) << 1;
        code <<= 1;
      }
      throw new Error("what is packed in this page is damaged");
    }
    function written() {
      const literals = bits(5) + 257, distances = bits(5) + 1, own = new Array(19).fill(0);
      for (let i = 0, n = bits(4) + 4; i < n; i++) own[ORDER[i]] = bits(3);
      const of = codes(own), lengths = [];
      while (lengths.length < literals + distances) {
        const symbol = next(of);
        if (symbol < 16) lengths.push(symbol);
        else if (symbol === 16) lengths.push(...new Array(bits(2) + 3).fill(lengths.at(-1)));
        else lengths.push(...new Array(symbol === 17 ? bits(3) + 3 : bits(7) + 11).fill(0));
      }
      return [codes(lengths.slice(0, literals)), codes(lengths.slice(literals))];
    }
    const fixed = () => [
      codes(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))), codes(new Array(30).fill(5)),
    ];
    for (let last = 0; !last; ) {
      last = bits(1);
      const kind = bits(2);
      if (kind === 0) { // as it is, from the next byte on
        held = count = 0;
        const length = data[at] | (data[at + 1] << 8);
        out.set(data.subarray(at + 4, at + 4 + length), size);
        at += 4 + length;
        size += length;
        continue;
      }
      const [literals, distances] = kind === 1 ? fixed() : written();
      for (let symbol; (symbol = next(literals)) !== 256; ) {
        if (symbol < 256) {
          out[size++] = symbol;
          continue;
        }
        const [length, more] = LENGTHS[symbol - 257], end = size + length + bits(more);
        const [far, further] = DISTANCES[next(distances)], back = far + bits(further);
        for (; size < end; size++) out[size] = out[size - back];
      }
    }
    return out;
  }

  window.perflabUnpack = (text) => {
    const data = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
    const size = new DataView(data.buffer).getUint32(0, true);
    return new TextDecoder().decode(inflate(data.subarray(4), new Uint8Array(size)));
  };

  // Has the pictures drawn; the library is by far the largest part of what is packed.
  window.perflabPictures = () => {
    const library = document.getElementById("library");
    if (library === null) return;
    const script = document.createElement("script");
    script.textContent = `${perflabUnpack(library.textContent)};\n${document.getElementById("drawing").textContent}`;
    library.remove();
    document.body.append(script);
  };
})();
