package org.sparkfp4.keys;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.KeyForm;
import org.sparkfp4.formats.Mxfp4Codec;

/** Keys as they were and as they are cached, each [D][keys]. */
final class SampledKeys {
  private final CachedLayer layer;
  private final KeyForm form;
  private final float[][] originals;
  private final float[][] cached;
  private final float[] decoded;
  private final ByteBuffer packed;
  private final ByteBuffer scales;
  private int count;
  private long differing;
  private double squares;
  private double errors;

  SampledKeys(CachedLayer layer, KeyForm form, int maxKeys) {
    this.layer = layer;
    this.form = form;
    this.originals = new float[form.dim()][maxKeys];
    this.cached = new float[form.dim()][maxKeys];
    this.decoded = new float[form.dim()];
    this.packed = ByteBuffer.allocate(form.dim() / 2);
    this.scales = ByteBuffer.allocate(form.dim() / Mxfp4Codec.BLOCK);
  }

  void add(float[] key, CachedKeys pages, long slot) throws IOException {
    form.prepare(key);
    pages.decode(slot, decoded);
    ByteBuffer data = ByteBuffer.allocate(key.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    data.asFloatBuffer().put(key);
    Mxfp4Codec.encode(form.rule(), ElementType.F32, data, 1, key.length, packed, scales);
    int token = (int) (slot % layer.page().tokens());
    ByteBuffer page = pages.page(slot / layer.page().tokens());
    boolean equal = page.slice(layer.page().codesAt(token), packed.capacity()).equals(packed)
        && page.slice(layer.page().scalesAt(token), scales.capacity()).equals(scales);
    differing += equal ? 0 : 1;
    for (int d = 0; d < key.length; d++) {
      originals[d][count] = key[d];
      cached[d][count] = decoded[d];
      squares += (double) key[d] * key[d];
      errors += ((double) key[d] - decoded[d]) * ((double) key[d] - decoded[d]);
    }

    count++;
  }

  SampledKeys trimmed() {
    for (int d = 0; d < originals.length; d++) {
      originals[d] = Arrays.copyOf(originals[d], count);
      cached[d] = Arrays.copyOf(cached[d], count);
    }

    return this;
  }

  double relativeError() {
    return squares == 0 ? 0 : Math.sqrt(errors / squares);
  }

  int count() {
    return count;
  }

  /** Keys whose bytes are not the reference's. */
  long differing() {
    return differing;
  }

  float[][] originals() {
    return originals;
  }

  float[][] cached() {
    return cached;
  }
}
