package org.sparkfp4.calibration;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.sparkfp4.fuzz.Hostile;
import org.sparkfp4.report.ExpertLoad;

/** Any file as statistics.json, beside an empty file of statistics: believed or not, and asked for every scale. */
class StatisticsFuzz {
  private static final Configuration CONF = new Configuration(false);

  private Path folder;

  @BeforeEach
  void makeFolder() throws IOException {
    folder = Files.createTempDirectory("statistics-fuzz-");
    Files.createFile(folder.resolve("statistics-00001-of-00001.safetensors"));
  }

  @FuzzTest
  void statistics(byte[] data) throws IOException {
    Files.write(folder.resolve(Statistics.INDEX), data);

    Hostile.read(data.length, () -> {
      StatisticsIndex index = Statistics.open(CONF, new org.apache.hadoop.fs.Path(folder.toString())).index();
      for (InputScaleRule rule : InputScaleRule.values()) {
        MeasuredAmaxes amaxes = new MeasuredAmaxes(index, rule);
        for (ModuleStatistics module : index.modules()) {
          amaxes.own(List.of(module.module()));
          amaxes.peers(List.of(module.module()));
        }
      }
    });
    Hostile.read(data.length, () -> ExpertLoad.read(CONF, folder.toString()));
  }

  @AfterEach
  void removeFolder() {
    FileUtil.fullyDelete(folder.toFile());
  }
}
