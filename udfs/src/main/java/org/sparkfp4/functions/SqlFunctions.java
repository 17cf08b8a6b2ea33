package org.sparkfp4.functions;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoder;
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoders;
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.ScalaUDF;
import org.apache.spark.sql.errors.QueryCompilationErrors;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.ToScalaUDF;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.kernels.KernelChoice;
import scala.Function1;
import scala.Option;
import scala.Some;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The functions by their SQL names: {@code nvfp4_quantize(payload, dtype, cols[, search])}, with ModelOpt's arithmetic,
 * and {@code nvfp4_amax(payload, dtype)}, which take one tensor where the classes take units of up to three;
 * {@code nvfp4_dequantize}, and those of {@link FigureSqlFunctions} and {@link KeySqlFunctions}.
 */
public final class SqlFunctions {
  /** The version of Spark FP4 that had them first. */
  private static final String SINCE = "0.1.0";
  private static final AgnosticEncoder<?> BINARY = AgnosticEncoders.BinaryEncoder$.MODULE$;
  private static final AgnosticEncoder<?> STRING = AgnosticEncoders.StringEncoder$.MODULE$;
  private static final AgnosticEncoder<?> LONG = AgnosticEncoders.BoxedLongEncoder$.MODULE$;
  private static final AgnosticEncoder<?> FLOAT = AgnosticEncoders.BoxedFloatEncoder$.MODULE$;

  private SqlFunctions() {}

  /** Makes the functions known to every session that the extensions configure. */
  public static void inject(SparkSessionExtensions extensions) {
    inject(extensions, quantizeInfo(), SqlFunctions::quantize);
    inject(extensions, amaxInfo(), SqlFunctions::amax);
    inject(extensions, dequantizeInfo(), SqlFunctions::dequantize);
    FigureSqlFunctions.inject(extensions);
    KeySqlFunctions.inject(extensions);
  }

  /** @param builder may refuse a call by an IllegalArgumentException, which becomes a mistake in the query */
  static void inject(SparkSessionExtensions extensions, ExpressionInfo info,
      Function1<Seq<Expression>, Expression> builder) {
    Function1<Seq<Expression>, Expression> refusing = arguments -> {
      try {
        return builder.apply(arguments);
      } catch (IllegalArgumentException e) {
        throw SqlFunctions.<RuntimeException>unchecked(ArgumentChecks.refusal(info.getName(), e));
      }
    };
    extensions.injectFunction(new Tuple3<>(new FunctionIdentifier(info.getName()), info, refusing));
  }

  private static Expression quantize(Seq<Expression> arguments) {
    List<Expression> given = checked("nvfp4_quantize", arguments, 3, 4);
    requireTensor(given.get(1), given.get(2));
    Nvfp4Quantize function = Nvfp4Functions.quantize(Nvfp4Recipe.MODELOPT, search(given), kernels());
    return expression("nvfp4_quantize", ToScalaUDF.apply(function), Nvfp4Quantize.RETURN_TYPE,
        payloads(given.get(0), given.get(1), given.get(2), absent(DataTypes.FloatType), absent(DataTypes.BinaryType)),
        List.of(BINARY, BINARY, BINARY, BINARY, BINARY, BINARY, STRING, LONG, FLOAT, BINARY));
  }

  private static Expression amax(Seq<Expression> arguments) {
    List<Expression> given = checked("nvfp4_amax", arguments, 2);
    ArgumentChecks.text(given.get(1), ElementType::of);
    return expression("nvfp4_amax", ToScalaUDF.apply(Nvfp4Functions.amax(kernels())), Nvfp4Amax.RETURN_TYPE,
        payloads(given.get(0), given.get(1), absent(DataTypes.LongType)),
        List.of(BINARY, BINARY, BINARY, BINARY, BINARY, BINARY, STRING, LONG));
  }

  private static Expression dequantize(Seq<Expression> arguments) {
    List<Expression> given = checked("nvfp4_dequantize", arguments, 3, 4);
    Nvfp4Recipe recipe = given.size() < 4 ? Nvfp4Recipe.MODELOPT : recipe(constant("recipe", given.get(3)));
    Nvfp4Dequantize function = Nvfp4Functions.dequantize(recipe, kernels());
    return expression("nvfp4_dequantize", ToScalaUDF.apply(function), Nvfp4Dequantize.RETURN_TYPE,
        given.subList(0, 3), List.of(BINARY, BINARY, FLOAT));
  }

  /** Literals that say how a payload is to be encoded. */
  static void requireTensor(Expression dtype, Expression cols) {
    ArgumentChecks.text(dtype, ElementType::of);
    ArgumentChecks.whole(cols, Segments::requireColumns);
  }

  /** The search that a fourth argument names. It is settled when a query is analysed, as a kernel is a search's. */
  static ScaleSearch search(List<Expression> arguments) {
    if (arguments.size() < 4) {
      return ScaleSearch.RTN;
    }

    String name = constant("search", arguments.get(3));
    ScaleSearch search = Arrays.stream(ScaleSearch.values())
        .filter(known -> known.optionName().equals(name))
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException(
            "Invalid search: " + name + ", must be rtn, four-over-six or sweep"));
    if (search == ScaleSearch.WEIGHTED) {
      throw new IllegalArgumentException(
          "Invalid search: weighted needs statistics, which quantize --statistics has and a query has not; give rtn, "
              + "four-over-six or sweep");
    }

    return search;
  }

  private static Nvfp4Recipe recipe(String name) {
    return switch (name) {
      case "modelopt" -> Nvfp4Recipe.MODELOPT;
      case "compressed-tensors" -> Nvfp4Recipe.COMPRESSED_TENSORS;
      default -> throw new IllegalArgumentException(
          "Invalid recipe: " + name + ", must be modelopt or compressed-tensors");
    };
  }

  private static String constant(String name, Expression argument) {
    if (argument instanceof Literal literal && literal.dataType().equals(DataTypes.StringType)
        && literal.value() != null) {
      return literal.value().toString();
    }

    throw new IllegalArgumentException("Invalid " + name + ": " + argument.sql() + ", must be a string literal");
  }

  /** The arguments of one member that has no scales, then the function's own. */
  private static List<Expression> payloads(Expression data, Expression... others) {
    List<Expression> arguments = new ArrayList<>(List.of(data));
    arguments.addAll(Collections.nCopies(5, absent(DataTypes.BinaryType)));
    arguments.addAll(List.of(others));
    return arguments;
  }

  /** The encoders are what makes Spark cast an INT literal to the BIGINT that the function takes. */
  static Expression expression(String name, Object function, DataType type, List<Expression> arguments,
      List<AgnosticEncoder<?>> encoders) {
    ArgumentChecks.requireWhole(name, arguments, encoders);
    List<Option<ExpressionEncoder<?>>> inputs = encoders.stream()
        .<Option<ExpressionEncoder<?>>>map(encoder -> new Some<>(ExpressionEncoder.apply(encoder)))
        .toList();
    return new ScalaUDF(function, type, seq(arguments), seq(inputs), Option.empty(), new Some<>(name), true, true);
  }

  /** @param expected how many arguments there may be */
  static List<Expression> checked(String name, Seq<Expression> arguments, Integer... expected) {
    if (!List.of(expected).contains(arguments.size())) {
      throw SqlFunctions.<RuntimeException>unchecked(
          QueryCompilationErrors.wrongNumArgsError(name, seq(List.<Object>of((Object[]) expected)), arguments.size(),
              "", "", ""));
    }

    return CollectionConverters.asJava(arguments);
  }

  /** Spark's AnalysisException is checked in Java, but a function's builder may throw it as Spark's own do. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E unchecked(Throwable error) throws E {
    throw (E) error;
  }

  static Literal absent(DataType type) {
    return Literal.create(null, type);
  }

  private static <T> Seq<T> seq(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  /** The session's settings when a query is analysed. */
  static KernelChoice kernels() {
    SQLConf conf = SQLConf.get();
    return KernelChoice.of(key -> conf.getConfString(key, null));
  }

  private static ExpressionInfo quantizeInfo() {
    return info(Nvfp4Quantize.class, "nvfp4_quantize",
        "_FUNC_(payload, dtype, cols[, search]) - Returns the NVFP4 form of a weight tensor, with ModelOpt's arithmetic: "
            + "struct<packed, scales, amax, sum_squares, squared_error, global_scale, requantized>.",
        """
            * payload - BINARY: the tensor's elements, row-major [rows, cols], little-endian
            * dtype - STRING: BF16, F16 or F32
            * cols - BIGINT: elements a row, a multiple of 16
            * search - STRING literal, how block scales are chosen: rtn (default), four-over-six or sweep
            """,
        """
            > SELECT name, _FUNC_(payload, dtype, cols) AS q FROM tensors;
            > SELECT name, _FUNC_(payload, dtype, cols, 'sweep').global_scale FROM tensors;
            """,
        """
            packed has two E2M1 codes a byte, the first in the low half; scales has an E4M3 byte for every 16 elements
            of a row. global_scale is amax / 2688, of a search amax / 1536, and is the row's own: read a tensor whole,
            option slabBytes. A null payload gives null; a NaN or infinite weight is an error.
            """);
  }

  private static ExpressionInfo amaxInfo() {
    return info(Nvfp4Amax.class, "nvfp4_amax",
        "_FUNC_(payload, dtype) - Returns the largest absolute value of a weight tensor as a FLOAT.",
        """
            * payload - BINARY: the tensor's elements, little-endian
            * dtype - STRING: BF16, F16 or F32
            """,
        "> SELECT name, _FUNC_(payload, dtype) AS amax FROM tensors;",
        "A null payload gives null; NaN or infinity where a weight is not finite.");
  }

  private static ExpressionInfo dequantizeInfo() {
    return info(Nvfp4Dequantize.class, "nvfp4_dequantize",
        "_FUNC_(packed, scales, global_scale[, recipe]) - Returns the values of an NVFP4 tensor as a payload of F32.",
        """
            * packed - BINARY: codes, two a byte, as nvfp4_quantize gives them
            * scales - BINARY: an E4M3 byte for every 8 bytes of packed, row-major
            * global_scale - FLOAT: as the checkpoint stores it
            * recipe - STRING literal: modelopt (default), whose global scale multiplies, or compressed-tensors, whose
              global scale divides
            """,
        "> SELECT name, _FUNC_(q.packed, q.scales, q.global_scale) AS payload FROM quantized;",
        "A value is e2m1(code) * d, d being the block scale by the global scale, rounded once each to FLOAT. Null where "
            + "an argument is null.");
  }

  static ExpressionInfo info(Class<?> type, String name, String usage, String arguments, String example,
      String note) {
    return new ExpressionInfo(type.getName(), "", name, usage, titled("Arguments", arguments),
        titled("Examples", example), section(note, 4), "misc_funcs", SINCE, "", "scala_udf");
  }

  private static String titled(String title, String text) {
    return "\n    " + title + ":" + section(text, 6);
  }

  /** Spark asks for just this frame of white space. */
  private static String section(String text, int indent) {
    return "\n" + text.indent(indent) + "  ";
  }
}
