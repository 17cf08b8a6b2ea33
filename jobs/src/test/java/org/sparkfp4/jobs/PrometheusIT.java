package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.TestSpark;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/** A run that is scraped while it is at work: Spark's own servlet, the settings of conf/README.md. */
class PrometheusIT {
  private static final String NAME = "metrics_sparkfp4_driver_spark_fp4_";

  @TempDir
  private static Path folder;

  private final HttpClient http = HttpClient.newHttpClient();

  @BeforeAll
  static void makeSource() throws IOException {
    Python.required();
    new SyntheticCheckpoint(SyntheticFamily.QWEN3_MOE, new ModelShape(2, 16, 512, 512, 1024), DType.BF16, 7, 16 << 20)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(folder.resolve("source").toString()));
  }

  @Test
  void countersGrowAsTheRunGoesOn() throws Exception {
    int port = FreePort.find();
    HttpRequest request =
        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/metrics/prometheus")).build();
    AtomicReference<String> scraped = new AtomicReference<>("");
    try (RunningSubmit running = SparkSubmit.local(2)
        .conf("spark.fp4.cpu.tier", "java")
        .conf("spark.ui.enabled", "true")
        .conf("spark.ui.port", Integer.toString(port))
        .conf("spark.metrics.namespace", "sparkfp4")
        .conf("spark.metrics.conf.*.sink.prometheusServlet.class", "org.apache.spark.metrics.sink.PrometheusServlet")
        .conf("spark.metrics.conf.*.sink.prometheusServlet.path", "/metrics/prometheus")
        .start(ClusterInputs.quantize(folder.toString(), "output"))) {
      running.awaitThat("a scrape with a finished shard", () -> {
        scraped.set(scrape(request));
        return scraped.get().matches("(?s).*" + NAME + "run_shardsFinished\\w*\\{[^}]*\\} [1-9].*");
      });
    }

    JsonNode metrics = new ObjectMapper()
        .readTree(Python.required().runOn(scraped.get(), "/python/prometheus_metrics.py"));
    double planned = value(metrics, "run_shardsPlanned");
    assertThat(planned).isGreaterThan(10);
    assertThat(value(metrics, "run_shardsFinished")).isBetween(1.0, planned);
    assertThat(value(metrics, "sink_units")).isPositive();
    assertThat(value(metrics, "source_bytes")).isPositive();
  }

  /** The page; nothing where nobody listens yet. */
  private String scrape(HttpRequest request) {
    try {
      return http.send(request, BodyHandlers.ofString()).body();
    } catch (IOException e) {
      return "";
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static double value(JsonNode metrics, String counter) {
    for (String ending : new String[] {"_Value", "_Count", "_Number"}) {
      if (metrics.has(NAME + counter + ending)) {
        return metrics.get(NAME + counter + ending).asDouble();
      }
    }

    throw new AssertionError("no " + NAME + counter + " in " + metrics);
  }
}
