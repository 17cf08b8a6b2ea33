import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.udf;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.functions.Nvfp4Functions;
import org.sparkfp4.functions.Nvfp4Quantize;
import org.sparkfp4.kernels.Device;
import org.sparkfp4.kernels.KernelChoice;

/**
 * The pipeline without a disk: safetensors source, nvfp4_quantize, a sink that takes the rows and does nothing.
 * Arguments: folder, device, search, slab bytes, rounds. Prints one line of a Markdown table, GB/s of source bytes.
 */
public final class Pipeline {
  private Pipeline() {}

  public static void main(String[] arguments) throws Exception {
    SparkSession spark = SparkSession.builder().appName("pipeline").getOrCreate();
    KernelChoice device = new KernelChoice(Device.named(arguments[1]), "auto");
    ScaleSearch search = ScaleSearch.named(arguments[2]);
    Dataset<Row> source = spark.read().format("safetensors").option("slabBytes", arguments[3]).load(arguments[0]);
    long bytes = source.selectExpr("sum(rows * cols * 2)").first().getLong(0);
    Column none = lit(null).cast("binary");
    Column quantized = udf(Nvfp4Functions.quantize(Nvfp4Recipe.MODELOPT, search, device), Nvfp4Quantize.RETURN_TYPE)
        .apply(col("payload"), none, none, none, none, none, col("dtype"), col("cols"), lit(null).cast("float"), none);
    Dataset<Row> query = source.select(quantized.as("q"));
    List<Double> rates = new ArrayList<>();
    for (int round = 0; round <= Integer.parseInt(arguments[4]); round++) {
      long begin = System.nanoTime();
      query.write().format("noop").mode("overwrite").save();
      double rate = bytes / (double) (System.nanoTime() - begin);
      if (round > 0) {
        rates.add(rate);
      }
    }

    StringBuilder all = new StringBuilder();
    rates.forEach(rate -> all.append(String.format(Locale.ROOT, " %.1f", rate)));
    List<Double> sorted = rates.stream().sorted().toList();
    System.out.printf(Locale.ROOT, "| %s | %s | %s | %.1f |%s |%n", arguments[1], arguments[2], arguments[3],
        sorted.get(sorted.size() / 2), all);
    spark.stop();
  }
}
