package org.sparkfp4;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.Test;

/** What the packages of udfs and jobs may know of each other. */
class PackagesTest {
  private static final JavaClasses PRODUCT = new ClassFileImporter()
      .withImportOption(new ImportOption.DoNotIncludeTests())
      .importPackages("org.sparkfp4");

  @Test
  void packagesHaveNoCycles() {
    slices().matching("org.sparkfp4.(**)").should().beFreeOfCycles().check(PRODUCT);
  }

  @Test
  void formatsNeedTheJdkAlone() {
    classes().that().resideInAPackage("org.sparkfp4.formats")
        .should().onlyDependOnClassesThat().resideInAnyPackage("java..", "org.sparkfp4.formats")
        .check(PRODUCT);
  }
}
