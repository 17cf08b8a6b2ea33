package org.sparkfp4.keys;

import java.util.Map;
import java.util.TreeMap;
import org.sparkfp4.formats.Mxfp4Codec;

/** The {@code __metadata__} of a layer's file: what a loader must know of its pages. */
public final class CacheMetadata {
  /** Value of {@code format}. */
  public static final String FORMAT = "sparkfp4-index-k";

  /** Says whether token t is in slot t: {@link #BY_TOKEN} if so. */
  static final String SLOT_ORDER = "slot_order";

  static final String BY_TOKEN = "token";

  /** How many keys the file has. */
  static final String TOKENS = "num_tokens";

  /** Epsilon of the norm; empty where there is none. */
  static final String EPS = "ln_eps";

  private static final String FORMAT_VERSION = "1";

  private CacheMetadata() {}

  static Map<String, String> of(KeyOptions options, CacheTensor keys, CacheLayer layer, String writer,
      String checksum) {
    Map<String, String> metadata = new TreeMap<>();
    metadata.put("format", FORMAT);
    metadata.put("version", FORMAT_VERSION);
    metadata.put("model", options.model());
    metadata.put("layer_name", layer.name());
    metadata.put("head_dim", Integer.toString(keys.dim()));
    metadata.put("block", Integer.toString(Mxfp4Codec.BLOCK));
    metadata.put("page_tokens", Integer.toString(options.pageTokens()));
    metadata.put("layout", "segregated");
    metadata.put("scale", "ue8m0");
    metadata.put("scale_rule", options.rule().text());
    metadata.put("round", "rne-keep-neg-zero");
    metadata.put("nibble", "even-low");
    metadata.put("norm", keys.weight() == null ? "none" : "layernorm");
    metadata.put(EPS, keys.weight() == null ? "" : Float.toString(options.eps()));
    metadata.put("ln_round_bf16", Boolean.toString(options.roundNormToBf16()));
    metadata.put("hadamard", Boolean.toString(options.hadamard()));
    metadata.put(SLOT_ORDER, layer.isInOrder() ? BY_TOKEN : "mapped");
    metadata.put(TOKENS, Long.toString(layer.cached()));
    metadata.put("writer", writer);
    metadata.put("checksum", "sha256:" + checksum);
    return metadata;
  }
}
