package org.sparkfp4.functions;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoder;
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoders;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.internal.ToScalaUDF;
import org.apache.spark.sql.types.DataTypes;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Mxfp4Codec;
import org.sparkfp4.formats.ScaleRule;
import scala.collection.immutable.Seq;

/** The functions of MXFP4 caches by their SQL names. Their tensors are payloads, as the safetensors source gives them. */
final class KeySqlFunctions {
  private static final AgnosticEncoder<?> BINARY = AgnosticEncoders.BinaryEncoder$.MODULE$;
  private static final AgnosticEncoder<?> STRING = AgnosticEncoders.StringEncoder$.MODULE$;
  private static final AgnosticEncoder<?> INT = AgnosticEncoders.BoxedIntEncoder$.MODULE$;
  private static final AgnosticEncoder<?> LONG = AgnosticEncoders.BoxedLongEncoder$.MODULE$;
  private static final AgnosticEncoder<?> FLOAT = AgnosticEncoders.BoxedFloatEncoder$.MODULE$;

  private KeySqlFunctions() {}

  static void inject(SparkSessionExtensions extensions) {
    ExpressionInfo quantize = quantizeInfo();
    SqlFunctions.inject(extensions, quantize, arguments -> {
      List<Expression> given = encoding(quantize.getName(), arguments);
      return SqlFunctions.expression(quantize.getName(),
          ToScalaUDF.apply(new Mxfp4Quantize(SqlFunctions.kernels().onHost())), Mxfp4Quantize.RETURN_TYPE, given,
          List.of(BINARY, STRING, LONG, STRING));
    });
    ExpressionInfo dequantize = dequantizeInfo();
    SqlFunctions.inject(extensions, dequantize, arguments -> SqlFunctions.expression(dequantize.getName(),
        ToScalaUDF.apply(Nvfp4Functions.mxfp4Dequantize(SqlFunctions.kernels())), Mxfp4Dequantize.RETURN_TYPE,
        SqlFunctions.checked(dequantize.getName(), arguments, 2), List.of(BINARY, BINARY)));
    ExpressionInfo error = errorInfo();
    SqlFunctions.inject(extensions, error, arguments -> {
      List<Expression> given = encoding(error.getName(), arguments);
      return SqlFunctions.expression(error.getName(), ToScalaUDF.apply(new Mxfp4Error(SqlFunctions.kernels().onHost())),
          Mxfp4Error.RETURN_TYPE, given, List.of(BINARY, STRING, LONG, STRING));
    });
    ExpressionInfo insert = insertInfo();
    SqlFunctions.inject(extensions, insert, arguments -> {
      List<Expression> given = SqlFunctions.checked(insert.getName(), arguments, 11);
      ArgumentChecks.text(given.get(1), ElementType::of);
      requirePositive(given.get(2), "head_dim");
      requirePositive(given.get(8), "block_size");
      return SqlFunctions.expression(insert.getName(),
          ToScalaUDF.apply(new KeyNormQuantInsert(SqlFunctions.kernels().onHost())), KeyNormQuantInsert.RETURN_TYPE,
          given, List.of(BINARY, STRING, INT, BINARY, BINARY, FLOAT, BINARY, BINARY, INT, BINARY, INT));
    });
    ExpressionInfo query = queryInfo();
    SqlFunctions.inject(extensions, query, arguments -> {
      List<Expression> given = SqlFunctions.checked(query.getName(), arguments, 7);
      ArgumentChecks.text(given.get(1), ElementType::of);
      ArgumentChecks.text(given.get(3), dtype -> ElementType.of(dtype, "weights_dtype"));
      requirePositive(given.get(5), "num_heads");
      requirePositive(given.get(6), "padded_num_heads");
      return SqlFunctions.expression(query.getName(),
          ToScalaUDF.apply(new QueryQuant(SqlFunctions.kernels().onHost())), QueryQuant.RETURN_TYPE, given,
          List.of(BINARY, STRING, BINARY, STRING, FLOAT, INT, INT));
    });
    ExpressionInfo prologue = prologueInfo();
    SqlFunctions.inject(extensions, prologue, arguments -> {
      List<Expression> given = SqlFunctions.checked(prologue.getName(), arguments, 18);
      ArgumentChecks.text(given.get(4), ElementType::of);
      return SqlFunctions.expression(prologue.getName(),
          ToScalaUDF.apply(new FusedPrologue(SqlFunctions.kernels().onHost())), FusedPrologue.RETURN_TYPE, given,
          List.of(BINARY, BINARY, BINARY, BINARY, STRING, BINARY, BINARY, BINARY, BINARY, FLOAT, BINARY, INT, BINARY,
              BINARY, BINARY, BINARY, INT, INT));
    });
  }

  /** The arguments {@code payload, dtype, cols[, rule]}, the last of which may be absent. */
  private static List<Expression> encoding(String name, Seq<Expression> arguments) {
    List<Expression> given = new ArrayList<>(SqlFunctions.checked(name, arguments, 3, 4));
    given.addAll(Collections.nCopies(4 - given.size(), SqlFunctions.absent(DataTypes.StringType)));
    ArgumentChecks.text(given.get(1), ElementType::of);
    ArgumentChecks.whole(given.get(2), cols -> Payload.columns(cols, Mxfp4Codec.BLOCK));
    ArgumentChecks.text(given.get(3), ScaleRule::of);
    return given;
  }

  private static void requirePositive(Expression argument, String name) {
    ArgumentChecks.whole(argument, value -> Payload.requirePositive(value, name));
  }

  private static ExpressionInfo quantizeInfo() {
    return SqlFunctions.info(Mxfp4Quantize.class, "mxfp4_quantize",
        "_FUNC_(payload, dtype, cols[, rule]) - Returns the MXFP4 form of a tensor: struct<packed, scales>.",
        """
            * payload - BINARY: the tensor's elements, row-major [rows, cols], little-endian
            * dtype - STRING: BF16, F16 or F32
            * cols - BIGINT: elements a row, a multiple of 32
            * rule - STRING: of the block scales: ceil (default), floor, even or best-of-two
            """,
        "> SELECT name, _FUNC_(payload, dtype, cols) AS q FROM tensors;",
        """
            packed has two E2M1 codes a byte, the first in the low half; scales has a byte u, which means 2^(u - 127),
            for every 32 elements of a row. A null payload gives null; a NaN or infinite value is an error.
            """);
  }

  private static ExpressionInfo dequantizeInfo() {
    return SqlFunctions.info(Mxfp4Dequantize.class, "mxfp4_dequantize",
        "_FUNC_(packed, scales) - Returns the values of an MXFP4 tensor as a payload of F32.",
        """
            * packed - BINARY: codes, as mxfp4_quantize gives them
            * scales - BINARY: a byte for every 16 bytes of packed
            """,
        "> SELECT name, _FUNC_(q.packed, q.scales) AS payload FROM quantized;",
        "The values are exact. Null where an argument is null.");
  }

  private static ExpressionInfo errorInfo() {
    return SqlFunctions.info(Mxfp4Error.class, "mxfp4_error",
        "_FUNC_(payload, dtype, cols[, rule]) - Returns what MXFP4 would lose of a tensor: struct<sum_squares, "
            + "squared_error, relative_error, sqnr>.",
        """
            * payload, dtype, cols, rule - as mxfp4_quantize takes them
            """,
        "> SELECT name, _FUNC_(payload, dtype, cols, 'best-of-two').relative_error FROM tensors;",
        "The figures are those of nvfp4_error. A null payload gives null; a NaN or infinite value is an error.");
  }

  private static ExpressionInfo insertInfo() {
    return SqlFunctions.info(KeyNormQuantInsert.class, "mxfp4_k_norm_quant_insert",
        "_FUNC_(k, dtype, head_dim, norm_weight, norm_bias, norm_eps, slot_mapping, kv_cache, block_size, "
            + "topk_indices_buffer, topk) - Returns an MXFP4 indexer cache with a batch of keys in it: "
            + "struct<kv_cache, topk_indices>.",
        """
            * k - BINARY: keys [tokens, head_dim] of dtype
            * dtype - STRING: BF16, F16 or F32
            * head_dim - INT: values a key, a multiple of 32
            * norm_weight, norm_bias - BINARY: the LayerNorm's, of dtype or F32; null for keys that are normalised
            * norm_eps - FLOAT
            * slot_mapping - BINARY: I64 slots, one a token; negative ones are not inserted
            * kv_cache - BINARY: U8 [pages, block_size, head_dim / 2 + head_dim / 32]; null for pages of zeros
            * block_size - INT: tokens a page
            * topk_indices_buffer - BINARY: I32 [rows, topk], or null
            * topk - INT
            """,
        "> SELECT layer, _FUNC_(k, 'BF16', 128, w, b, 1e-6, slots, NULL, 64, NULL, NULL).kv_cache FROM batches;",
        "A page has the codes of its tokens, then their scales. A row of topk_indices for each token is -1.");
  }

  private static ExpressionInfo queryInfo() {
    return SqlFunctions.info(QueryQuant.class, "mxfp4_q_quant",
        "_FUNC_(index_q, dtype, index_weights, weights_dtype, weight_scale, num_heads, padded_num_heads) - Returns "
            + "indexer queries as readers of an MXFP4 cache take them: struct<q_packed, q_scale, weights>.",
        """
            * index_q - BINARY: queries [tokens, num_heads, 128] of dtype
            * dtype - STRING: BF16, F16 or F32
            * index_weights - BINARY: [tokens, num_heads] of weights_dtype
            * weights_dtype - STRING: BF16, F16 or F32
            * weight_scale - FLOAT: what each weight is multiplied by
            * num_heads - INT
            * padded_num_heads - INT: P, num_heads at least; the heads between are zero
            """,
        "> SELECT _FUNC_(index_q, 'BF16', index_weights, 'F32', 0.015625, 32, 32) AS q FROM queries;",
        "q_packed is U8 [tokens, P, 64], q_scale I32 [tokens, P] of four scale bytes, weights F32 [tokens, P].");
  }

  private static ExpressionInfo prologueInfo() {
    return SqlFunctions.info(FusedPrologue.class, "mxfp4_fused_prologue",
        "_FUNC_(q_c, kv_c, k_pe, index_k, dtype, q_norm_weight, kv_norm_weight, k_norm_weight, k_norm_bias, eps, "
            + "topk_indices_buffer, topk, mla_cache, mla_slot_mapping, index_cache, index_slot_mapping, "
            + "mla_block_size, index_block_size) - Returns what comes before sparse attention: "
            + "struct<q_c_normed, kv_c_normed, topk_indices, mla_cache, index_cache>.",
        """
            * q_c, kv_c, k_pe, index_k - BINARY: [tokens, Q], [tokens, 512], [tokens, 64], [tokens, D] of dtype
            * dtype - STRING: BF16, F16 or F32
            * q_norm_weight, kv_norm_weight - BINARY: the RMSNorms' weights, of dtype or F32
            * k_norm_weight, k_norm_bias - BINARY: the keys' LayerNorm, of dtype or F32; null for none
            * eps - FLOAT: of all three
            * topk_indices_buffer, topk - BINARY: I32 [rows, topk], or null; INT
            * mla_cache, mla_slot_mapping - BINARY: U8 [pages, mla_block_size, 656] and I64 slots
            * index_cache, index_slot_mapping - BINARY: U8 [pages, index_block_size, D / 2 + D / 32] and I64 slots
            * mla_block_size, index_block_size - INT: tokens a page
            """,
        "> SELECT _FUNC_(q_c, kv_c, k_pe, index_k, 'BF16', qw, kvw, kw, kb, 1e-6, NULL, NULL, X'', slots, X'', slots, "
            + "64, 64) AS p FROM batches;",
        "A null cache or mapping skips its insert, an empty cache stands for as many zero pages as the slots need.");
  }
}
