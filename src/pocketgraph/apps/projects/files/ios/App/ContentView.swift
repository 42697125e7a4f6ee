import SwiftUI

/// The views, as tabs.
struct ContentView: View {
    var body: some View {
        TabView {
@camera_tab@            SimpleView()
                .tabItem { Label("Simple", systemImage: "photo") }
            BenchmarkView()
                .tabItem { Label("Benchmark", systemImage: "speedometer") }
        }
    }
}
