package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;

/**
 * An entry of the latent attention's FP8 cache ({@code fp8_ds_mla}), 656 bytes a token: 512 E4M3 codes of the latent,
 * four binary32 scales, one for each tile of 128, and 64 bfloat16 of the rotary part.
 *
 * <p>A tile's scale is {@code max(amax / 448, 2^-126)}, its codes are E4M3 of {@code x / scale}, true divisions.
 */
public final class Fp8DsMla {
  /** Values of the latent. */
  public static final int LATENT = 512;

  /** Values of the rotary part. */
  public static final int ROPE = 64;

  /** Values that share a scale. */
  public static final int TILE = 128;

  private static final int SCALES_AT = LATENT;
  private static final int ROPE_AT = SCALES_AT + LATENT / TILE * Float.BYTES;

  /** Bytes of an entry. */
  public static final int BYTES = ROPE_AT + ROPE * Short.BYTES;

  private Fp8DsMla() {}

  /**
   * Normalises latents, stores them, and inserts an entry for each token that has a slot. Page p has its tokens' entries
   * one after the other at p * stride.
   *
   * @param norm of 512 weights
   * @param roundToBf16 whether the normalised latent is rounded to bfloat16 before its codes are chosen
   * @param latent little-endian [tokens, 512], from position to limit
   * @param rope little-endian [tokens, 64] of the same type, stored rounded to bfloat16
   * @param latentOut takes the normalised latents [tokens, 512], of the same type
   * @param slots see {@link SlotMapping}
   * @param pages the cache, from position to limit
   * @param pageTokens tokens of a page
   * @param stride bytes from a page to the next
   * @throws NonFiniteRowException naming the first token that has a value that is not finite; what was written is not to
   *     be used
   */
  public static void insert(RmsNorm norm, boolean roundToBf16, ElementType type, ByteBuffer latent, ByteBuffer rope,
      long tokens, ByteBuffer latentOut, LongBuffer slots, ByteBuffer pages, long pageCount, int pageTokens,
      long stride) {
    int used = SlotMapping.check(slots, tokens, pageCount * pageTokens);
    ByteBuffer source = latent.slice().order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer rotary = rope.slice().order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer out = latentOut.slice().order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer target = pages.slice().order(ByteOrder.LITTLE_ENDIAN);
    Mxfp4Codec.requireBytes("latents", source, tokens * LATENT * type.bytes());
    Mxfp4Codec.requireBytes("rotary parts", rotary, tokens * ROPE * type.bytes());
    norm.apply(type, latent, tokens, latentOut);
    float[] x = new float[LATENT];
    float[] r = new float[ROPE];
    for (int token = 0; token < used; token++) {
      long slot = slots.get(slots.position() + token);
      if (slot >= 0) {
        type.load(rotary, token * ROPE * type.bytes(), r);
        NonFiniteRowException.check(r, token);
        for (int i = 0; i < ROPE; i++) {
          r[i] = BFloat16.round(r[i]);
        }

        RmsNorm.requireNormalised(r, token);
        type.load(source, token * LATENT * type.bytes(), x);
        norm.apply(x);
        if (roundToBf16) {
          for (int i = 0; i < LATENT; i++) {
            x[i] = BFloat16.round(x[i]);
          }

          RmsNorm.requireNormalised(x, token);
        }

        encode(x, r, target, Math.toIntExact(slot / pageTokens * stride + slot % pageTokens * BYTES));
      }
    }
  }

  private static void encode(float[] latent, float[] rope, ByteBuffer out, int at) {
    for (int tile = 0; tile < LATENT / TILE; tile++) {
      float amax = 0;
      for (int i = 0; i < TILE; i++) {
        amax = Math.max(amax, Math.abs(latent[tile * TILE + i]));
      }

      float scale = Math.max(amax / E4M3.MAX, Float.MIN_NORMAL);
      for (int i = 0; i < TILE; i++) {
        out.put(at + tile * TILE + i, (byte) E4M3.encode(latent[tile * TILE + i] / scale));
      }

      out.putFloat(at + SCALES_AT + tile * Float.BYTES, scale);
    }

    for (int i = 0; i < ROPE; i++) {
      out.putShort(at + ROPE_AT + i * Short.BYTES, BFloat16.fromFloat(rope[i]));
    }
  }

  /** The values of an entry: the latent's and the rotary part's. */
  public static void decode(ByteBuffer entry, int at, float[] latent, float[] rope) {
    ByteBuffer bytes = entry.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < LATENT; i++) {
      latent[i] = E4M3.decode(bytes.get(at + i)) * bytes.getFloat(at + SCALES_AT + i / TILE * Float.BYTES);
    }

    for (int i = 0; i < ROPE; i++) {
      rope[i] = BFloat16.toFloat(bytes.getShort(at + ROPE_AT + i * Short.BYTES));
    }
  }
}
