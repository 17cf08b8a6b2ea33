package org.sparkfp4.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.MathContext;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The page of the largest model that there is, in a browser: 60 layers of 384 experts with three projections. */
class ReportPageTest {
  private static final int LAYERS = 60;
  private static final int EXPERTS = 384;
  private static final String HOSTILE = "model.layers.3.</script><script>document.title='taken'</script>&<b>.o_proj";

  /** Written behind the page: whether it is wider than the window, and what a script or its rules complained of. */
  private static final String PROBE = """
      <script>
      document.body.dataset.wide = document.documentElement.scrollWidth > innerWidth;
      document.body.dataset.elements = document.querySelectorAll('*').length;
      document.body.dataset.canvases = document.querySelectorAll('canvas').length;
      </script>
      """;

  @TempDir
  private static Path folder;

  private static Path page;

  @BeforeAll
  static void write() throws IOException {
    page = folder.resolve("large.html");
    Files.writeString(page, ReportPage.html(large()) + PROBE);
  }

  @ParameterizedTest
  @CsvSource({"390, false", "1920, true"})
  void isDrawnOnPhoneAndProjector(int width, boolean dark) {
    Browser.Visit visit = Browser.required(folder).open(page, width, dark);

    assertThat(visit.console()).as("what the browser complains of").isEmpty();
    assertThat(attribute(visit, "charts")).as("heat maps of errors, of tokens; distributions").isEqualTo(6);
    assertThat(attribute(visit, "canvases")).isEqualTo(6);
    assertThat(attribute(visit, "elements")).as("elements, of 69,120 layers").isLessThan(3000);
    assertThat(visit.dom())
        .contains("data-wide=\"false\"")
        .contains("2 differences found")
        .contains(">Warnings<", "0.8 % of the block scales of &lt;i&gt;a layer&lt;/i&gt; are subnormal")
        .contains(">Error by layer and expert<", ">Tokens by layer and expert<", ">Time and throughput<")
        .contains("2 experts saw none, such as model.layers.0.mlp.experts.7")
        .contains("The worst 100; 1 more is in the table.");
    assertThat(rows(visit, "Outliers")).isEqualTo(100);
    assertThat(rows(visit, "Error by kind of layer")).isEqualTo(4);
    assertThat(rows(visit, "Time and throughput by stage")).isEqualTo(2);
  }

  @ParameterizedTest
  @CsvSource({"390", "1920"})
  void heatMapsShowEveryShade(int width) throws IOException {
    Path png = Browser.required(folder).picture(page, width, 1700, false, folder.resolve(width + ".png"));

    var image = ImageIO.read(png.toFile());
    Set<Integer> shades = new TreeSet<>();
    for (int y = 0; y < image.getHeight(); y++) {
      for (int x = 0; x < image.getWidth(); x++) {
        shades.add(image.getRGB(x, y) & 0xFFFFFF);
      }
    }

    assertThat(shades).hasSizeGreaterThan(200).contains(0xFEE838);
  }

  /** Errors that hardly differ, as those of layers that are alike: the worst has the last colour all the same. */
  @ParameterizedTest
  @CsvSource({"0.0780, 0.0817", "0.0817, 0.081701", "0.0010, 0.0900"})
  void coloursGoFromTheLeastToTheLargest(double least, double most) throws IOException {
    List<LayerRow> rows = new ArrayList<>();
    for (int i = 0; i < 80; i++) {
      double error = least + (most - least) * i / 79;
      rows.add(row("model.layers." + i / 8 + ".mlp.experts." + i % 8 + ".down_proj", "routed experts", error));
    }

    Report report = new Report(
        "Spark FP4", "verify", "2026-01-01T00:00:00Z", "file:/in", "file:/out/", Map.of(),
        new Report.Summary(80, 0, null, null, 0, 0, most, 0, null, null, null), Kind.of(rows), List.of(), null,
        List.of(), null, null, null, null, List.of());
    Path file = Files.writeString(
        folder.resolve("alike.html"), ReportPage.html(new RunReport(report, rows, null)) + PROBE);
    Browser browser = Browser.required(folder);

    var image = ImageIO.read(browser.picture(file, 1280, 1700, false, folder.resolve("alike.png")).toFile());
    Map<Integer, Integer> pixels = new TreeMap<>();
    for (int y = 0; y < image.getHeight(); y++) {
      for (int x = 0; x < image.getWidth(); x++) {
        pixels.merge(image.getRGB(x, y) & 0xFFFFFF, 1, Integer::sum);
      }
    }

    // a cell of the map; the scale beside it has a line of each colour
    assertThat(pixels.get(0xFEE838)).as("the largest").isGreaterThan(1000);
    assertThat(pixels.get(0x00224E)).as("the least").isGreaterThan(1000);
    assertThat(browser.open(file, 1280, false).dom())
        .contains("at most " + new BigDecimal(most).round(new MathContext(4)).toPlainString());
  }

  @Test
  void needsNothingButItself() throws IOException {
    String html = ReportPage.html(large());

    assertThat(html.length()).isLessThan(1_500_000);
    assertThat(html).contains("default-src 'none'");
    String own = html.replaceFirst("(?s)\\n/\\*\\n\\* Licensed to the Apache Software Foundation.*?\\n</script>", "");
    assertThat(own.length()).as("all but the plotting library").isLessThan(500_000);
    assertThat(Pattern.compile("<(?:link|img|iframe|script[^>]* src)|https?:|url\\(").matcher(own).results()
        .map(MatchResult::group)).isEmpty();
    assertThat(Pattern.compile("</script", Pattern.CASE_INSENSITIVE).matcher(html).results()).hasSize(6);
  }

  @Test
  void namesAreTextAndNothingElse() {
    Browser.Visit visit = Browser.required(folder).open(page, 1280, false);

    assertThat(visit.dom())
        .contains("<title>Spark FP4 verify: K2 &lt;NVFP4&gt;</title>")
        .contains(
            "model.layers.3.&lt;/script&gt;&lt;script&gt;document.title='taken'&lt;/script&gt;&amp;&lt;b&gt;.o_proj");
  }

  @Test
  void emptyReportIsDrawnToo() throws IOException {
    Report empty = new Report(
        "Spark FP4", "quantize", "2026-01-01T00:00:00Z", "file:/in", "file:/out/", Map.of(),
        new Report.Summary(0, 0, null, null, 0, 0, null, 0, null, null, null), List.of(), List.of(), null, List.of(),
        null, null, null, null, List.of());
    Path file = Files.writeString(folder.resolve("empty.html"), ReportPage.html(new RunReport(empty, List.of(), null)));

    Browser.Visit visit = Browser.required(folder).open(file, 390, false);

    assertThat(visit.console()).isEmpty();
    assertThat(visit.dom()).contains("<h1>out</h1>").contains("data-charts=\"0\"");
  }

  private static int rows(Browser.Visit visit, String label) {
    int from = visit.dom().indexOf("aria-label=\"" + label + "\"");
    assertThat(from).as(label).isPositive();
    String body = visit.dom().substring(visit.dom().indexOf("<tbody>", from), visit.dom().indexOf("</tbody>", from));
    return body.split("<tr>", -1).length - 1;
  }

  private static int attribute(Browser.Visit visit, String name) {
    var matcher = Pattern.compile("data-" + name + "=\"(\\d+)\"").matcher(visit.dom());
    assertThat(matcher.find()).as(name).isTrue();
    return Integer.parseInt(matcher.group(1));
  }

  /** Errors as rounding makes them, a layer that is a little worse, and outliers. */
  private static RunReport large() {
    Random random = new Random(1);
    List<LayerRow> rows = new ArrayList<>();
    for (int layer = 0; layer < LAYERS; layer++) {
      for (int expert = 0; expert < EXPERTS; expert++) {
        for (String projection : List.of("gate_proj", "up_proj", "down_proj")) {
          boolean outlier = projection.equals("down_proj") && layer % 10 == 3 && expert % 19 == 4 && layer > 3;
          double error = (outlier ? 0.12 + 0.02 * random.nextDouble() : 0.0945) + 0.0003 * random.nextGaussian()
              + (layer == 41 ? 0.001 : 0) + 0.00002 * layer;
          rows.add(row("model.layers." + layer + ".mlp.experts." + expert + "." + projection, "routed experts", error));
        }
      }

      rows.add(row("model.layers." + layer + ".self_attn.o_proj", "attention", 0.095 + 0.0002 * random.nextGaussian()));
    }

    rows.add(row(HOSTILE, "attention", 0.2));
    List<LayerRow> marked = Outliers.mark(rows);
    List<LayerRow> outliers = Outliers.of(marked);
    long[] scales = new long[128];
    for (int scale = 8; scale < scales.length - 1; scale++) {
      scales[scale] = Math.round(1e9 * Math.exp(-Math.pow((scale - 88) / 12.0, 2)));
    }

    Report report = new Report(
        "Spark FP4 0.1.0", "verify", "2026-01-01T12:00:00Z", "s3a://models/K2", "s3a://models/K2 <NVFP4>", Map.of(),
        new Report.Summary(
            rows.size(), rows.size() * 14_680_064L, null, 2_050_000_000_000L, 580_000_000_000L, 0.0946, 20.48,
            outliers.size(), 2L, 812L, 3456L),
        Kind.of(marked), outliers.stream().limit(Report.OUTLIERS).toList(),
        List.of("Missing file tokenizer.json, which is in the manifest",
            "Shard model-00001-of-00512.safetensors has 5 bytes, in the manifest 7"),
        List.of("0.8 % of the block scales of <i>a layer</i> are subnormal"),
        new long[] {68, 134, 127, 117, 152, 153, 138, 112}, scales, null, load().dead(),
        List.of(new Stage("start and read headers", 8.2, 0, 0),
            new Stage("read, decode and compare", 4200, 2_630_000_000_000L, 0)));
    return new RunReport(report, marked, load());
  }

  private static ExpertLoad load() {
    List<String> layers = new ArrayList<>();
    List<long[]> tokens = new ArrayList<>();
    Random random = new Random(2);
    for (int layer = 0; layer < LAYERS; layer++) {
      layers.add("model.layers." + layer + ".mlp.experts");
      tokens.add(random.doubles(EXPERTS).mapToLong(share -> 1 + Math.round(8000 * share * share * share)).toArray());
    }

    tokens.get(0)[7] = 0;
    tokens.get(9)[100] = 0;
    return new ExpertLoad(layers, tokens);
  }

  private static LayerRow row(String module, String role, double error) {
    ModulePlace place = ModulePlace.of(module);
    return new LayerRow(
        module, role, place.layer(), place.expert(), place.projection(), 2048, 7168, "BF16", 0.3f, 1e-4f, 1000,
        1000 * error * error, error, -20 * Math.log10(error), 0.995, 0.07, 0.002, 0.0, 0.31, 17L, 4096L, null, false,
        false);
  }
}
