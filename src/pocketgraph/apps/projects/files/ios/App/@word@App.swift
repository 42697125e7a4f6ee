import SwiftUI

@main
struct @word@Main: App {
    var body: some Scene {
        WindowGroup {
            ContentView()
        }
    }
}
